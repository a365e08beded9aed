"""The code of a module without words that cannot change a figure, to detect stale figures."""

import ast
import io
import tokenize


def code_alone(text: str) -> str:
    """Return a module's code without docstrings, comments and empty lines.

    None of them can change a figure, so editing them makes no claim stale.
    """
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=int(last)):
                lines[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


def code_without_messages(text: str) -> str:
    """Return what :func:`code_alone` does, with only the class of every error that is raised."""
    lines = text.encode().splitlines()  # columns of syntax trees count bytes
    raised = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Raise)]
    for node in sorted(raised, key=lambda node: -node.lineno):
        error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        known = f"raise {ast.unparse(error)}" if error else "raise"
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        lines[first:last] = [lines[first][: node.col_offset] + known.encode()]
    return code_alone(b"\n".join(lines).decode())
