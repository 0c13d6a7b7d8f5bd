package otlp

import (
	"maps"
	"slices"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
)

// Scope names who made a signal.
const Scope = "github.com/agentd/agentd"

// maxText bounds one value, in bytes.
const maxText = 4 << 10

// Text is an attribute. What is no UTF-8 cannot be encoded, and is replaced.
func Text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: TextValue(value)}
}

// TextValue is a value that is a text.
func TextValue(value string) *commonpb.AnyValue {
	if len(value) > maxText {
		value = value[:maxText]
	}
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: strings.ToValidUTF8(value, "\uFFFD")}}
}

// ResourceOf is what describes the process, without what is empty.
func ResourceOf(attributes map[string]string) *resourcepb.Resource {
	r := &resourcepb.Resource{}
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		if value := attributes[key]; value != "" {
			r.Attributes = append(r.Attributes, Text(strings.ToValidUTF8(key, "\uFFFD"), value))
		}
	}
	return r
}
