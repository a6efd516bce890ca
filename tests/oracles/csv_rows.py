"""Rows of CSV, one character after the other."""


def read_rows(text, delimiter, n_columns):
    """The plain rows at the start of a text, as (line, cells), the characters and lines of them, and whether an odd one follows.

    A row is plain if it is whole, has so many cells, and has quotes only around cells, doubled inside, or inside other cells.
    """
    rows, size, n_lines = [], 0, 0
    while size < len(text):
        if text.startswith(("\n", "\r\n"), size):
            size, n_lines = text.index("\n", size) + 1, n_lines + 1
            continue
        cells, place, lines, is_over = [], size, 0, False
        while not is_over:
            if text.startswith('"', place):
                cell, end, is_closed = read_quoted(text, place + 1)
                if not is_closed or "\r" in cell.replace("\r\n", ""):
                    return rows, size, n_lines, is_closed
                lines += cell.count("\n")
            else:
                end = next((k for k in range(place, len(text)) if text[k] in (delimiter, "\n", "\r")), len(text))
                cell = text[place:end]
            cells.append(cell)
            rest = text[end:]
            if rest.startswith(delimiter):
                place = end + 1
                if len(cells) >= n_columns:
                    return rows, size, n_lines, True
            elif rest == "" or rest.startswith(("\n", "\r\n")):
                place, is_over = min(len(text), end + (2 if rest.startswith("\r\n") else 1)), True
                lines += rest != ""
            else:
                return rows, size, n_lines, True
        if len(cells) != n_columns:
            return rows, size, n_lines, True
        if n_columns == 1 or any(cells):
            rows.append((n_lines, cells))
        size, n_lines = place, n_lines + lines
    return rows, size, n_lines, False


def read_quoted(text, place):
    """A cell behind its opening quote, the place behind the closing one, and whether there is one."""
    cell = ""
    while place < len(text):
        if text.startswith('""', place):
            cell, place = cell + '"', place + 2
        elif text[place] == '"':
            return cell, place + 1, True
        else:
            cell, place = cell + text[place], place + 1
    return cell, place, False
