"""Reports: one page with everything that is known of a checkpoint, a run or a bot.

- `open_agent`: the agent of a report.
- `ReportedAgent`: a bot, a checkpoint, or a run and the checkpoint that stands for it.
- `measure_agent`: measure all that the report says.
- `Measurements`: that, in figures.
- `page_of`: the report as a page.
- `Page`: a page of text, tables and pictures.
- `write_page`: a page as an HTML or Markdown file.
"""

from devyatka_env.evaluation.reports.measurements import Measurements, measure_agent
from devyatka_env.evaluation.reports.page import Page
from devyatka_env.evaluation.reports.reported_agent import ReportedAgent, open_agent
from devyatka_env.evaluation.reports.sections import page_of
from devyatka_env.evaluation.reports.writers import write_page

__all__ = [
    "Measurements",
    "Page",
    "ReportedAgent",
    "measure_agent",
    "open_agent",
    "page_of",
    "write_page",
]
