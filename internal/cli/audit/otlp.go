package audit

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/otlp"
)

const (
	// maxOTLPMessage is how large a request becomes before it is sent as two: collectors
	// take 4 MiB by gRPC.
	maxOTLPMessage = 1 << 20
	// otlpPatience is how long an export that does not follow waits for a collector.
	otlpPatience = 30 * time.Second
	// The pauses between attempts.
	firstOTLPPause, lastOTLPPause = 500 * time.Millisecond, 30 * time.Second
)

// otlpTargets are the schemes of --to, with what they stand for.
//
//nolint:gochecknoglobals // a table of constants
var otlpTargets = []struct {
	scheme, url string
	protocol    otlp.Protocol
}{
	{"otlp+https://", "https://", otlp.HTTP}, {"otlp+http://", "http://", otlp.HTTP},
	{"otlp+grpcs://", "https://", otlp.GRPC}, {"otlp+grpc://", "http://", otlp.GRPC},
}

// otlpTarget returns where --to sends records, or nil where it names a file. What the URL
// does not say, such as headers and certificates, the OTEL_* variables say; otlp alone leaves
// all of it to them.
func otlpTarget(env *cli.Env, to string) (*otlp.Config, error) {
	set := map[string]string{"OTEL_SDK_DISABLED": "false", "OTEL_LOGS_EXPORTER": "otlp"}
	found := to == "otlp"
	for _, target := range otlpTargets {
		rest, ok := strings.CutPrefix(to, target.scheme)
		if !ok {
			continue
		}
		u, err := otlp.Endpoint("--to", target.url+rest, otlp.Logs, target.protocol, strings.Contains(rest, "/"))
		if err != nil {
			return nil, cli.Usage("%v", err)
		}
		found = true
		set["OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"], set["OTEL_EXPORTER_OTLP_LOGS_PROTOCOL"] = u.String(), string(target.protocol)
	}
	if !found {
		return nil, nil
	}
	cfg, _, err := otlp.FromEnv(func(name string) string { return cmp.Or(set[name], env.Getenv(name)) }, otlp.Logs)
	return cfg, err
}

// An otlpSink sends batches of records to a collector, each until it is taken: the cursor
// moves behind it. A collector that is away is waited for, and one that refuses ends the
// export. What it drops of a batch that it takes is told, as it would drop it again.
type otlpSink struct {
	client  *otlp.Client
	follow  bool
	stderr  io.Writer
	refused int64
	away    bool
}

// Write implements [export.Sink].
func (s *otlpSink) Write(ctx context.Context, lines []byte) error {
	var data logspb.LogsData
	if err := protojson.Unmarshal(lines, &data); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	for _, of := range data.ResourceLogs {
		for _, scope := range of.ScopeLogs {
			for _, r := range scope.LogRecords {
				r.TraceId = traceOf(r.Body)
			}
			if err := s.send(ctx, of, scope, scope.LogRecords); err != nil {
				return err
			}
		}
	}
	return nil
}

// traceOf is the trace id that a record's body names, so that collectors show it with the
// spans of its call.
func traceOf(body *commonpb.AnyValue) []byte {
	for _, member := range body.GetKvlistValue().GetValues() {
		if member.Key == "traceId" {
			id, err := hex.DecodeString(member.Value.GetStringValue())
			if err == nil && len(id) == 16 {
				return id
			}
		}
	}
	return nil
}

// send sends records, in as many requests as their size asks for.
func (s *otlpSink) send(ctx context.Context, of *logspb.ResourceLogs, scope *logspb.ScopeLogs, records []*logspb.LogRecord) error {
	message, err := proto.Marshal(&logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{
		Resource: of.Resource, ScopeLogs: []*logspb.ScopeLogs{{Scope: scope.Scope, LogRecords: records}},
	}}})
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if half := len(records) / 2; half > 0 && len(message) > maxOTLPMessage {
		if err := s.send(ctx, of, scope, records[:half]); err != nil {
			return err
		}
		return s.send(ctx, of, scope, records[half:])
	}
	return s.deliver(ctx, message)
}

// deliver makes one request, again and again while the collector is away.
func (s *otlpSink) deliver(ctx context.Context, message []byte) error {
	giveUp := time.Now().Add(otlpPatience)
	for pause := firstOTLPPause; ; pause = min(2*pause, lastOTLPPause) {
		refusal, err := s.client.Send(ctx, message)
		failed, ok := errors.AsType[*otlp.Error](err)
		wait := pause
		if ok {
			wait = max(wait, failed.After)
		}
		switch {
		case err == nil:
			s.taken(refusal)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !ok || !failed.Retryable || !s.follow && time.Now().Add(wait).After(giveUp):
			return fmt.Errorf("export: %s: %w", s.client.Endpoint(), err)
		}
		if !s.away {
			s.away = true
			fmt.Fprintf(s.stderr, "the export waits for %s: %v\n", s.client.Endpoint(), err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// taken tells what became of a batch.
func (s *otlpSink) taken(refusal *otlp.Refusal) {
	if s.away {
		s.away = false
		fmt.Fprintf(s.stderr, "the export goes on: %s takes records again\n", s.client.Endpoint())
	}
	if refusal != nil {
		s.refused += refusal.Count
		fmt.Fprintf(s.stderr, "%s refuses %d records: %s\n", s.client.Endpoint(), refusal.Count, refusal.Reason)
	}
}
