"""What people see of numbers: charts, tables for the terminal, HTML pages."""
