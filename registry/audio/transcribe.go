package audio

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/internal/rootfs"
	"github.com/agentd/agentd/registry"
)

// A transcriber is the tool of one agent.
type transcriber struct {
	client   *netguard.Client
	url      string
	model    string
	files    *rootfs.Tree // nil where no folder is configured
	maxBytes int64
	slots    chan struct{}
}

// arguments are those of the tool.
type arguments struct {
	Path, Data, Language, Prompt string
	Timestamps                   bool
}

// A transcription is what an endpoint answers, as far as it is passed on.
type transcription struct {
	Text     *string   `json:"text"`
	Language string    `json:"language,omitempty"`
	Duration *float64  `json:"duration,omitempty"`
	Segments []segment `json:"segments,omitempty"`
}

type segment struct {
	Start float64 `json:"start"`
	End   float64 `json:"end"`
	Text  string  `json:"text"`
}

func (t *transcriber) transcribe(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var a arguments
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	release, err := t.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	recording, err := t.recording(ctx, a)
	if err != nil {
		return nil, err
	}
	f, ok := formatOf(recording)
	if !ok {
		return nil, registry.Errorf(registry.Unsupported, "this is no recording: it begins like none of wav, mp3, flac, ogg, m4a or webm")
	}
	body, contentType, err := t.form(a, recording, f)
	if err != nil {
		return nil, err
	}
	answer, err := t.client.Do(ctx, netguard.Request{
		Method: http.MethodPost, URL: t.url, Body: body,
		Header: map[string]string{"Content-Type": contentType, "Accept": "application/json"},
	})
	if err != nil {
		return nil, endpointError(err)
	}
	return read(answer)
}

// endpointError says whose fault a failure is: the model did not choose the endpoint.
func endpointError(err error) error {
	shown := failure.As(err)
	if shown == nil || shown.Code == failure.Timeout || shown.Code == failure.Cancelled {
		return err
	}
	return failure.Errorf(failure.Unavailable, "the endpoint for transcriptions cannot be used: %s", shown.Text).Because(errors.Join(err, shown.Err))
}

// recording returns the bytes that the arguments name.
func (t *transcriber) recording(ctx context.Context, a arguments) ([]byte, error) {
	switch {
	case (a.Path == "") == (a.Data == ""):
		return nil, registry.Errorf(registry.InvalidArguments, "give either path or data")
	case a.Data != "":
		data, err := base64.StdEncoding.DecodeString(a.Data)
		if err != nil {
			return nil, registry.Errorf(registry.InvalidArguments, "data is not base64")
		}
		if int64(len(data)) > t.maxBytes {
			return nil, registry.Errorf(registry.TooLarge, "the recording has more than %d bytes", t.maxBytes)
		}
		return data, nil
	case t.files == nil:
		return nil, registry.Errorf(registry.Unsupported, "this agent has no folders of recordings: pass the recording as data")
	}
	return t.files.Read(ctx, a.Path)
}

// form is the body of the request. The file has a name of ours: that of the caller is
// none of the endpoint's business.
func (t *transcriber) form(a arguments, recording []byte, f format) (body []byte, contentType string, err error) {
	var buffer bytes.Buffer
	buffer.Grow(len(recording) + 4096)
	w := multipart.NewWriter(&buffer)
	responseFormat := "json"
	if a.Timestamps {
		responseFormat = "verbose_json"
	}
	for _, field := range [][2]string{{"model", t.model}, {"response_format", responseFormat}, {"language", a.Language}, {"prompt", a.Prompt}} {
		if field[1] == "" {
			continue
		}
		if err := w.WriteField(field[0], field[1]); err != nil {
			return nil, "", err
		}
	}
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf(`form-data; name="file"; filename="recording.%s"`, f.ending)},
		"Content-Type":        {f.mediaType},
	})
	if err != nil {
		return nil, "", err
	}
	if _, err := part.Write(recording); err != nil {
		return nil, "", err
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return buffer.Bytes(), w.FormDataContentType(), nil
}

// read makes the endpoint's answer into the tool's. The text of an error is for the
// operator: it may speak of accounts.
func read(answer *netguard.Response) (json.RawMessage, error) {
	cause := fmt.Errorf("status %d: %.500q", answer.Status, answer.Body)
	switch answer.Status {
	case http.StatusOK:
	case http.StatusRequestEntityTooLarge:
		return nil, registry.Errorf(registry.TooLarge, "the recording is too long for the endpoint")
	case http.StatusTooManyRequests:
		return nil, registry.Errorf(registry.RateLimitExceeded, "the endpoint for transcriptions is asked too often")
	case http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return nil, registry.Errorf(registry.Failed, "the endpoint does not accept the recording (status %d)", answer.Status)
	default:
		return nil, failure.Errorf(failure.Unavailable, "the endpoint for transcriptions does not serve this agent (status %d)", answer.Status).Because(cause)
	}
	var out transcription
	if err := json.Unmarshal(answer.Body, &out); err != nil || out.Text == nil {
		return nil, failure.Errorf(failure.Unavailable, "the endpoint did not answer with a transcription").Because(cause)
	}
	return json.Marshal(out)
}
