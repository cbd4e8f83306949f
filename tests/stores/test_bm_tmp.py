from hypothesis import Phase, settings
from tests.stores.test_stores import _fresh_sqlite, _reopened_sqlite

from recollect.stores.memory import MemoryStore
from recollect.testing.branching import branch_machine

TestMemory = branch_machine(MemoryStore).TestCase
TestSqlite = branch_machine(_fresh_sqlite, _reopened_sqlite).TestCase
TestMemory.settings = settings(
    max_examples=600, stateful_step_count=25, deadline=None, report_multiple_bugs=False, phases=[Phase.generate]
)
TestSqlite.settings = settings(
    max_examples=150, stateful_step_count=20, deadline=None, report_multiple_bugs=False, phases=[Phase.generate]
)
