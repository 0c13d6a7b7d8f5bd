package fleet

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/internal/strictyaml"
)

// FuzzDecode: any bytes as any of the three files give a model or an *Error,
// and no path of a model leads out of the root.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"version: 1\nname: x\nagents: [{id: a, path: ./a, deploy: {target: t}}]\nenvironments: {e: {inherit: e, peersRef: p, overrides: {a: {envFiles: [x]}}}}\nhosts: [{name: h, url: 'http://h'}]\ndeploy: {targets: {t: {kind: k}}}\n",
		"name: a\nskills: {s: {process: {command: [x, y], dir: ../.., env: {A: b}, inheritEnv: [G*]}}}\npermissions: {allow: [x]}\nscopes: [a:b]\nrpc: {auth: {required: hmac}}\ntools: {rateLimit: 1}\ncontrolPlane: {auth: {enabled: 1}}\nlimits: {maxPending: 1}\nsecurity: {defaultPermissions: [c], auditLog: 1}\nx-y: 1\n",
		"version: 1\npeers: [{agent: agent://a, capabilities: ../../etc/passwd, transports: [{kind: nats, servers: [s], subjects: {requests: r}}], auth: {provider: hmac, keyId: k, secretRef: s}}]\n",
	} {
		f.Add(s)
	}
	root := f.TempDir()
	p, err := newPaths(root)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src string) {
		check := func(decode func(*strictyaml.File) []string) {
			file, err := strictyaml.Parse("f.yaml", []byte(src))
			var paths []string
			if err == nil {
				paths = decode(file)
				err = file.Err()
			}
			var e *strictyaml.Error
			if err != nil && (!errors.As(err, &e) || len(e.Faults) == 0) {
				t.Fatalf("not an *Error with faults: %v", err)
			}
			for _, path := range paths {
				if path != "" && path != root && !strings.HasPrefix(path, root+string(filepath.Separator)) {
					t.Fatalf("%q leads out of %q", path, root)
				}
			}
		}
		check(func(file *strictyaml.File) (paths []string) {
			m := decodeManifest(file, p)
			for _, e := range m.entries {
				paths = append(paths, e.member.Dir, e.member.AuditDB, e.member.SessionDB)
			}
			for _, e := range m.fleet.Environments {
				paths = append(paths, e.PeersRef)
			}
			return paths
		})
		check(func(file *strictyaml.File) (paths []string) {
			for _, s := range decodeAgent(file, "a", p, actionOptions{dir: p.root}).Skills {
				if s.Process != nil {
					paths = append(paths, s.Process.Dir)
				}
			}
			return paths
		})
		check(func(file *strictyaml.File) (paths []string) {
			for _, e := range decodePeers(file, filepath.Join(root, "rpc-peers.yaml"), p) {
				paths = append(paths, e.pin.path)
			}
			return paths
		})
	})
}
