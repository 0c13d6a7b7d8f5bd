package envelope

// DecodeAny is the decoder for messages of any spelling, against which tests hold the
// quicker one.
func DecodeAny(data []byte) (*Envelope, error) {
	m := &Message{}
	if err := decodeAny(data, m); err != nil {
		return nil, err
	}
	return &m.Envelope, nil
}
