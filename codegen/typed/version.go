package typed

// IsAtLeastVersion1 is named by code that needs version 1 of this package or a
// later one: with an older one it does not compile.
const IsAtLeastVersion1 = true
