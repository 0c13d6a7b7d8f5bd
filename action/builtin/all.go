package builtin

import (
	"encoding/json"
	"strings"

	"github.com/agentd/agentd/action/dbquery"
	"github.com/agentd/agentd/action/emailsend"
	"github.com/agentd/agentd/action/fileread"
	"github.com/agentd/agentd/action/httpget"
	"github.com/agentd/agentd/action/notification"
	"github.com/agentd/agentd/action/weather"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/internal/sqlread"
)

// All returns every action that agentd has, in the order of the documentation.
func All() []Definition {
	return []Definition{
		{Action: parsed(httpget.Definition), Config: json.RawMessage(netguard.ConfigSchema), open: openHTTPGet},
		{Action: parsed(dbquery.Definition), Config: json.RawMessage(sqlread.ConfigSchema), open: openDBQuery},
		{Action: parsed(fileread.Definition), Config: json.RawMessage(fileReadConfig), open: openFileRead},
		{Action: parsed(emailsend.Definition), Config: json.RawMessage(emailsend.ConfigSchema), open: openEmailSend},
		{Action: parsed(notification.Definition), Config: json.RawMessage(notification.ConfigSchema), open: openNotification},
		{Action: parsed(weather.Definition), Config: weatherConfig(), open: openWeather},
	}
}

func openHTTPGet(config json.RawMessage, env Env) (runner, error) {
	var c httpget.Config
	if err := decode(config, &c); err != nil {
		return nil, err
	}
	c.Secret = env.secret()
	return opened(httpget.New(c))
}

func openDBQuery(config json.RawMessage, env Env) (runner, error) {
	var c dbquery.Config
	if err := decode(config, &c); err != nil {
		return nil, err
	}
	c.Base, c.Secret = env.Dir, env.secret()
	return opened(dbquery.New(c))
}

const fileReadConfig = `{
  "type": "object",
  "properties": {
    "dir": {"type": "string", "minLength": 1},
    "folders": {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}},
    "hardLinks": {"type": "boolean"},
    "maxBytes": {"type": "integer", "minimum": 1, "maximum": 67108864}
  },
  "additionalProperties": false
}`

func openFileRead(config json.RawMessage, env Env) (runner, error) {
	var c fileread.Config
	if err := decode(config, &c); err != nil {
		return nil, err
	}
	c.Base = env.Dir
	return opened(fileread.New(c))
}

// weatherConfig is the schema of a guarded client, whose hosts may be left out, with what
// the service needs.
func weatherConfig() json.RawMessage {
	const pointer = `{"type": "string", "pattern": "^/"}` // RFC 6901; the whole answer is no number
	const own = `"properties": {
    "endpoint": {"type": "string", "minLength": 1},
    "key": {"type": "string"},
    "units": {"type": "object", "properties": {"celsius": {"type": "string"}, "fahrenheit": {"type": "string"}}, "additionalProperties": false},
    "fields": {"type": "object", "properties": {"temperature": ` + pointer + `, "condition": ` + pointer + `, "humidity": ` + pointer + `}, "additionalProperties": false},`
	s := strings.Replace(netguard.ConfigSchema, `"properties": {`, own, 1)
	return json.RawMessage(strings.Replace(s, `"required": ["hosts"]`, `"required": ["endpoint"]`, 1))
}

func openWeather(config json.RawMessage, env Env) (runner, error) {
	var c weather.Config
	if err := decode(config, &c); err != nil {
		return nil, err
	}
	c.Secret = env.secret()
	return opened(weather.New(c))
}

func openEmailSend(config json.RawMessage, env Env) (runner, error) {
	var c emailsend.Config
	if err := decode(config, &c); err != nil {
		return nil, err
	}
	c.Secret = env.secret()
	h, err := emailsend.New(c)
	if err != nil {
		return nil, err
	}
	return sender{h}, nil
}

// A sender connects for each mail, and keeps nothing open.
type sender struct{ *emailsend.Handler }

func (sender) Close() error { return nil }

func openNotification(config json.RawMessage, env Env) (runner, error) {
	var c notification.Config
	if err := decode(config, &c); err != nil {
		return nil, err
	}
	c.Secret = env.secret()
	return opened(notification.New(c))
}

// opened keeps a nil pointer from becoming a runner that is not nil.
func opened[R runner](r R, err error) (runner, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}
