"""The code of a module without docstrings and comments, to detect stale figures."""

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
