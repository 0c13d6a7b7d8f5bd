// Package lint finds what a capabilities file allows and its readers do not.
//
// A schema that package schema enforces to the letter may still be refused by
// the model provider that is given the capability as a tool, and one refused
// tool fails the whole request. Each [Profile] is the set of rules of one
// reader; each [Rule] names its source. Linting changes nothing: payloads are
// always checked with the full schema.
//
// # Where the rules come from
//
// Providers document their limits in prose and change them. What was read is
// dated here; a rule that comes from observed answers and not from a manual
// says so in its Source.
//
//   - [OpenAIStrict]: "Structured model outputs", section "Supported schemas",
//     developers.openai.com/api/docs/guides/structured-outputs, as of 2026-02.
//   - [Anthropic]: "Structured outputs", section "JSON Schema limitations",
//     platform.claude.com/docs/en/build-with-claude/structured-outputs, as of
//     2026; answers of the Messages API quoted in public issues.
//   - [Gemini]: "Structured output", section "JSON Schema support",
//     ai.google.dev/gemini-api/docs/structured-output, as of 2026-02; answers of
//     the API for functionDeclarations.parameters quoted in public issues.
//
// Those profiles judge input schemas, which are what a provider is sent as a
// tool's parameters, and output schemas too if [Options] asks for it.
package lint
