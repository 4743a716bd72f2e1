"""What a command says on standard error, apart from what depends on the machine it runs on."""


def said(errors: str) -> str:
    """The text without the line that only the first command on a machine prints."""
    return "".join(line for line in errors.splitlines(keepends=True) if "compiling its kernels" not in line)
