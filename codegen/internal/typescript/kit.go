package typescript

import (
	"strings"

	"github.com/agentd/agentd/codegen/internal/ident"
	"github.com/agentd/agentd/codegen/internal/model"
)

// Emit writes the module of api, which makes and serves its calls by way of the kit, the
// package @agentd/sdk.
func Emit(api *model.API) []byte {
	e := newEmitter(api)
	e.Line("\nimport * as kit from \"@agentd/sdk\";\n")
	e.Line("export { type Call, type Result, SkillError, unwrap } from \"@agentd/sdk\";")
	e.types(api)
	e.kitClient(api)
	e.WriteString(kitServer)
	e.Line("  return kit.serve(handlers as kit.Handlers, { ...options, takesObject: %s });\n}", e.objectTakers(api))
	return []byte(e.String())
}

// kitClient writes a class with a method for each capability, and one for the progress of
// any.
func (e *emitter) kitClient(api *model.API) {
	e.Line("\n/** Calls the capabilities of %s. */\nexport class Client {", api.Agent)
	e.WriteString(kitConnect)
	names := methodNames(api)
	for _, c := range api.Capabilities {
		e.Line("")
		e.doc("  ", strings.TrimLeft(c.Doc+"\nCalls "+c.Name+".", "\n"))
		e.Line("  %s(payload: %s, options?: kit.RequestOptions): Promise<kit.Result<%s>> {", names[c.Name], c.Request.Name, c.Response.Name)
		e.Line("    return this.#caller.request(address, %s, payload, options);\n  }", e.quote(c.Name))
	}
	e.Line("}")
}

// methodNames returns the names of methods by those of their capabilities.
func methodNames(api *model.API) map[string]string {
	var claims []ident.Claim
	for _, c := range api.Capabilities {
		words := ident.CamelWords(c.Name)
		for i, word := range words {
			words[i] = strings.ToLower(word)
			if i > 0 {
				words[i] = strings.ToUpper(word[:1]) + strings.ToLower(word[1:])
			}
		}
		claims = append(claims, ident.Claim{Key: c.Name, Name: ident.StartWithLetter(strings.Join(words, ""), "call")})
	}
	// An object with a method called then is a promise to await, and the rest is what
	// classes and objects have already.
	return ident.Distinct(claims, "constructor", "stream", "then", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable",
		"toLocaleString", "toString", "valueOf", "toJSON", "prototype")
}

// kitConnect is how a client comes to one of the kit.
const kitConnect = `  readonly #caller: kit.Caller;

  /**
   * In a skill, and where AGENTD_SOCKET is set, it needs no arguments. Elsewhere caller is a client of the kit, the path of
   * an agent's control socket, or a URL.
   */
  constructor(caller: kit.Caller | string = kit.connect(), options?: kit.ConnectOptions) {
    this.#caller = typeof caller === "string" ? kit.connect(caller, options) : caller;
  }

  /** Calls a capability, and iterates over the progress of it. */
  stream<C extends keyof Capabilities>(
    capability: C,
    payload: Capabilities[C]["request"],
    options?: kit.RequestOptions,
  ): kit.ResultStream<Capabilities[C]["response"]> {
    return this.#caller.stream(address, capability, payload, options);
  }
`

// kitServer is the other side, but for the names of capabilities.
const kitServer = `
/** The code behind capabilities. */
export type Handlers = {
  [C in keyof Capabilities]?: (
    payload: Capabilities[C]["request"],
    call: kit.Call,
  ) => Capabilities[C]["response"] | Promise<Capabilities[C]["response"]>;
};

/** Serves the capabilities that there are handlers for, as agentd asks: one call, or as a worker many. It ends the process. */
export function serve(handlers: Handlers, options?: Omit<kit.ServeOptions, "takesObject">): Promise<never> {
`
