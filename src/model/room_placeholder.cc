namespace hearth {}
