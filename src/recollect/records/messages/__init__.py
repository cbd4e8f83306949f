"""Messages of chat APIs as turns: what an agent sends to a model and gets back, in one form for all APIs.

`read_turns` takes the messages of OpenAI's Chat Completions and Responses APIs and of Anthropic's Messages API, as
dictionaries or as objects of their SDKs, and yields turns. The same text in another shape gives the same turn.
"""

from recollect.records.messages.turns import Turn, read_turns
from recollect.records.messages.values import UnreadableError

__all__ = ["Turn", "UnreadableError", "read_turns"]
