"""Hooks of mkdocs (`mkdocs.yml`) that add the pages which are not in docs/.

The README, CONTRIBUTING and the changelog become pages; so do the examples, and the command reference is generated from
the help texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from recollect.cli.app import app

ROOT = Path(__file__).parent.parent
#: The file in the root -> its page.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
COMMANDS, EXAMPLES = "reference/commands.md", "examples.md"
_TO_DOCS = re.compile(r"\]\(docs/")
_TO_EXAMPLES = re.compile(r"\]\((?:\.\./)?examples/?(?:\w+\.py)?\)")
_TO_ROOT = re.compile(r"\]\(\.\./(\w+\.md)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, page in PAGES.items():
        text = _TO_DOCS.sub("](", (ROOT / name).read_text("utf-8"))
        for other, its_page in PAGES.items():
            text = text.replace(f"]({other}", f"]({its_page}")
        text = _TO_EXAMPLES.sub(f"]({EXAMPLES})", text)
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, COMMANDS, content=commands()))
    files.append(File.generated(config, EXAMPLES, content=examples()))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Point the links from docs/ to the root at the pages."""
    markdown = _TO_EXAMPLES.sub(f"]({EXAMPLES})", markdown)
    return _TO_ROOT.sub(lambda found: f"]({PAGES[found[1]]}", markdown)


def examples() -> str:
    """The programs in examples/, as Markdown: what each does, and its code."""
    pages = ["# Examples\n\nSmall programs that run offline."]
    for path in sorted((ROOT / "examples").glob("*.py")):
        pages.append(f"## {path.name}\n\n```python\n{path.read_text('utf-8').strip()}\n```")
    return "\n\n".join(pages) + "\n"


def commands() -> str:
    """The command reference, as Markdown: the help text of every command."""
    top = click.Context(app, info_name="recollect", max_content_width=100, terminal_width=100)
    return "# Commands\n\n" + "\n".join(f"## {context.command_path}\n\n{_help(context)}" for context in _contexts(top))


def _contexts(context: click.Context) -> Iterator[click.Context]:
    yield context
    command = context.command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _contexts(click.Context(inner, context, name, max_content_width=100, terminal_width=100))


def _help(context: click.Context) -> str:
    return f"```text\n{context.get_help()}\n```\n"
