"""What a report needs to know of a build: each file makes one kind of plain value of it."""
