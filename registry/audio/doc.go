// Package audio is the capability audio: it turns recordings into text by an endpoint
// that speaks OpenAI's API for transcriptions, as many do that run in the house.
//
// The operator names the endpoint and the folders that recordings may come from. What
// is not a recording by its first bytes is not sent, so that the tool is no way out for
// other files. Without an endpoint the capability is skipped.
package audio
