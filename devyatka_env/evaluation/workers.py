"""Tasks on this process, on several, or on a Ray cluster: the results come in the order of the tasks in any case."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from devyatka_env.bots import BotError

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")


class WorkerError(BotError):
    """A worker process died, or cannot be given a bot: nobody knows which."""


class Workers:
    """Who plays.

    A context manager: leaving it ends the processes. ``map`` may be called any number of times in between.

    Args:
        jobs: processes; 1 plays in this one.
        ray: address of a Ray cluster (``auto``, ``local``, or as `ray.init` takes it) to play on instead, about twice
            ``jobs`` tasks at a time.
        threads: torch threads of each process.

    Raises:
        ValueError: less than one job.
        ImportError: Ray is not installed.
    """

    def __init__(self, jobs: int = 1, ray: str | None = None, threads: int = 1) -> None:
        if jobs < 1:
            raise ValueError(f"jobs must be at least 1, not {jobs}")
        self.jobs = jobs
        self._threads = threads
        self._pool: ProcessPoolExecutor | None = None
        self._ray = _start_ray(ray, jobs) if ray is not None else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_pool()
        if self._ray is not None:
            self._ray.shutdown()

    def _stop_pool(self) -> None:
        if self._pool is not None:  # after Ctrl-C a worker may be in a chunk, or a move, that takes for ever
            processes = list((self._pool._processes or {}).values())
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()
                process.join()
            self._pool = None

    def map(self, function: Callable[[S, T], R], shared: S, tasks: Iterable[T]) -> Generator[R]:
        """``function(shared, task)`` of every task, in their order; only a few more than are asked for are begun.

        Raises:
            WorkerError: ``shared`` cannot be sent to other processes, or one of them died.
        """
        if self._ray is None and self.jobs == 1:
            for task in tasks:
                yield function(shared, task)
            return
        try:
            from cloudpickle import dumps  # gymnasium needs it, so it is there

            payload = dumps((function, shared))  # functions of a script or a notebook, too
        except Exception as error:  # whatever the objects raise
            raise WorkerError(
                f"a bot cannot be sent to other processes ({error}); play with jobs=1, without a Ray cluster"
            ) from error
        begin, result = self._on_ray(payload) if self._ray is not None else self._on_processes(payload)
        begun: deque[Any] = deque()
        try:
            for task in tasks:
                begun.append(begin(task))
                if len(begun) > 2 * self.jobs:
                    yield result(begun.popleft())
            while begun:
                yield result(begun.popleft())
        except BrokenProcessPool as error:
            self._pool = None
            raise WorkerError("a worker process died") from error
        finally:
            for future in begun:
                future.cancel() if self._ray is None else self._ray.cancel(future)

    def _on_processes(self, payload: bytes) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        if self._pool is None:
            # Spawned: forked threads of torch and of compiled kernels hang.
            self._pool = ProcessPoolExecutor(
                self.jobs, mp_context=get_context("spawn"), initializer=_start_worker, initargs=(self._threads,)
            )
        pool = self._pool
        return lambda task: pool.submit(_run, payload, task), lambda future: future.result()

    def _on_ray(self, payload: bytes) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        ray = self._ray
        assert ray is not None
        stored, remote = ray.put(payload), ray.remote(_run)

        def result(reference: Any) -> Any:
            try:
                return ray.get(reference)
            except ray.exceptions.RayError as error:
                raise WorkerError(f"a worker of the Ray cluster died or failed ({type(error).__name__})") from error

        return lambda task: remote.remote(stored, task), result


def _start_ray(address: str, jobs: int) -> Any:
    try:
        os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # a local cluster has no token
        import ray
    except ImportError as error:
        raise ImportError(f"Ray is not installed: pip install 'devyatka-env[ray]' ({error})") from error
    local: dict[str, Any] = {}
    if address == "local":  # on this machine, so the user's own modules are found where they are found here
        path = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path)
        local = {"num_cpus": jobs, "include_dashboard": False, "runtime_env": {"env_vars": {"PYTHONPATH": path}}}
    ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, **local)
    return ray


def _start_worker(threads: int) -> None:
    """Leave Ctrl-C to the main process, end when that one does, and keep torch to its threads."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if "torch" in sys.modules:  # imported with the user's main module, which has been run here
        sys.modules["torch"].set_num_threads(threads)


def _end_with_parent() -> None:
    """Wait for the end of the main process, whatever ends it (SIGKILL, too), and end this one."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # not `sys.exit`: a bot's endless move is in the way


@lru_cache(maxsize=8)
def _unpacked(payload: bytes) -> Any:
    return pickle.loads(payload)  # what this very program has packed


def _run(payload: bytes, task: Any) -> Any:
    function, shared = _unpacked(payload)
    return function(shared, task)
