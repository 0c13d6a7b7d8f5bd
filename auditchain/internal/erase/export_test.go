package erase

// For tests of interrupted erasures.
var EraseContent = eraseContent
