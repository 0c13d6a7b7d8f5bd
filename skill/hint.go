package skill

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/sandbox"
)

// isRefusal reports whether a line of standard error reads as if the system had refused
// what a program wanted.
func isRefusal(line string) bool {
	line = strings.ToLower(line)
	for _, words := range [...]string{
		"permission denied", "operation not permitted", "eacces", "eperm", "errno 13]", "errno 1]",
		unixRefused, "no usable temporary directory", strings.ToLower(oldClient),
	} {
		if strings.Contains(line, words) {
			return true
		}
	}
	return false
}

// unixRefused is what a program says that may not make a Unix socket.
const unixRefused = "address family not supported"

// oldClient is what a program says whose client was made before skills had AGENTD_URL.
const oldClient = "AGENTD_SOCKET is not set"

// withHint adds to a program's error, for agentd's own log, what may help: which key of
// agent.yaml, if it is confined, or another client. line is the last refusal that the
// program has reported, or "".
func withHint(err error, line string, p *sandbox.Policy) error {
	var public *rpc.SkillError
	if line == "" || !errors.As(err, &public) || public.Err != nil {
		return err
	}
	hinted := *public
	switch {
	case strings.Contains(line, oldClient):
		hinted.Err = fmt.Errorf("%q says a client that an earlier agentd has made: generate it again with `agentd capabilities gen`, or build the skill with the new skill/sdk; it then finds its agent at $AGENTD_URL", line)
	case p == nil:
		return err
	default:
		hinted.Err = fmt.Errorf("the sandbox of the skill may be the cause of %q: %s", line, grant(line, p))
	}
	return &hinted
}

// grant names what would permit what a line says was refused.
func grant(line string, p *sandbox.Policy) string {
	lower := strings.ToLower(line)
	path := pathIn(line)
	switch {
	case strings.Contains(lower, unixRefused):
		return "skills make no Unix sockets; they reach their agent at $AGENTD_URL"
	case strings.Contains(lower, "connect") || strings.Contains(lower, "dial "):
		if !p.Network {
			return "the capability's permissions name no network scope, such as network:read"
		}
		return "sandbox.connect in agent.yaml lists more TCP ports than those of DNS and the web"
	case strings.Contains(lower, "listen") || strings.Contains(lower, "bind"):
		return "sandbox.listen in agent.yaml lists the TCP ports on which the skill may listen"
	case path != "" && p.Reads(path) && p.User != nil:
		return fmt.Sprintf("the skill runs as the user %s (sandbox.user in agent.yaml), to whom modes and owner of %s must permit it; sandbox.write lists what it may change besides its temporary folder", p.User.Name, path)
	case path != "" && p.Reads(path):
		return fmt.Sprintf("sandbox.write in agent.yaml lists what it may change besides its temporary folder, and that is not %s", path)
	case path != "":
		return fmt.Sprintf("sandbox.read and sandbox.write in agent.yaml list what it may use besides its own folder, and that is not %s", path)
	default:
		return "sandbox.read, sandbox.write and sandbox.connect in agent.yaml grant more"
	}
}

// pathIn returns the first absolute path in a line, or "".
func pathIn(line string) string {
	match := regexp.MustCompile(`(?:^|[\s'"(=‘“])(/[^\s'":,)’”]+)`).FindStringSubmatch(line)
	if match == nil {
		return ""
	}
	return match[1]
}
