package envelope

// DecodeAny is the decoder for messages of any spelling, against which tests hold the
// quicker one.
var DecodeAny = decodeAny
