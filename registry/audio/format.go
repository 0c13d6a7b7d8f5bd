package audio

import "bytes"

// A format is what endpoints go by: the ending of the file's name.
type format struct{ ending, mediaType string }

// formatOf recognises a recording by its first bytes.
func formatOf(data []byte) (f format, ok bool) {
	at := func(offset int, magic string) bool {
		return len(data) >= offset && bytes.HasPrefix(data[offset:], []byte(magic))
	}
	switch {
	case at(0, "RIFF") && at(8, "WAVE"):
		return format{"wav", "audio/wav"}, true
	case at(0, "fLaC"):
		return format{"flac", "audio/flac"}, true
	case at(0, "OggS"):
		return format{"ogg", "audio/ogg"}, true
	case at(4, "ftyp"):
		return format{"m4a", "audio/mp4"}, true
	case at(0, "\x1aE\xdf\xa3"):
		return format{"webm", "audio/webm"}, true
	case at(0, "ID3"), isMP3Frame(data):
		return format{"mp3", "audio/mpeg"}, true
	}
	return format{}, false
}

// isMP3Frame reports whether data begins with the header of a frame of MPEG audio, layer
// III, whose reserved values text in UTF-16 would have.
func isMP3Frame(data []byte) bool {
	return len(data) >= 4 && data[0] == 0xff && data[1]&0xe6 == 0xe2 && data[1]&0x18 != 0x08 && // sync, layer III, version
		data[2]&0xf0 != 0xf0 && data[2]&0xf0 != 0 && data[2]&0x0c != 0x0c // bit rate, sample rate
}
