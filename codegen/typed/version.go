package typed

// IsAtLeastVersion1 is named by code that needs version 1 of this package or a
// later one: with an older one it does not compile.
const IsAtLeastVersion1 = true

// IsAtLeastVersion2 is named by code that needs version 2, which has
// [ObjectDecoder.Forbidden], [ObjectEncoder.Forbidden] and [ObjectEncoder.Constant].
const IsAtLeastVersion2 = true
