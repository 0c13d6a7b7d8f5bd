// Command skill is the code behind the capabilities of agent://shapes.
package main

import (
	"context"

	"github.com/agentd/agentd/codegen/typed"
	"github.com/agentd/agentd/skill/sdk"

	"github.com/agentd/agentd/codegen/testdata/golden/shapes/shapes"
)

func main() {
	var mux typed.Mux
	shapes.RegisterServer(&mux, server{})
	sdk.Serve(&mux)
}

// A server serves the capabilities. Its methods may be called concurrently.
type server struct{}

// Loose serves loose.
//
// No schemas */ and """ a hostile
// description: \ pyright: basic
// @ ts-nocheck
func (server) Loose(ctx context.Context, request shapes.LooseRequest) (response shapes.LooseResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("loose is not written yet")
}

// Nullable serves nullable.
func (server) Nullable(ctx context.Context, request shapes.NullableRequest) (response *shapes.NullableResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("nullable is not written yet")
}

// TaggedUnion serves tagged-union.
func (server) TaggedUnion(ctx context.Context, request shapes.TaggedUnionRequest) (response shapes.TaggedUnionResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("tagged-union is not written yet")
}

// Tree serves tree.
func (server) Tree(ctx context.Context, request shapes.TreeRequest) (response shapes.TreeResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("tree is not written yet")
}

// Endless serves endless.
func (server) Endless(ctx context.Context, request shapes.EndlessRequest) (response shapes.EndlessResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("endless is not written yet")
}

// Intersections serves intersections.
func (server) Intersections(ctx context.Context, request shapes.IntersectionsRequest) (response shapes.IntersectionsResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("intersections is not written yet")
}

// Empty serves empty.
func (server) Empty(ctx context.Context, request shapes.EmptyRequest) (response shapes.EmptyResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("empty is not written yet")
}

// Maps serves maps.
func (server) Maps(ctx context.Context, request shapes.MapsRequest) (response shapes.MapsResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("maps is not written yet")
}

// GetUser_5d95 serves get-user.
func (server) GetUser_5d95(ctx context.Context, request shapes.GetUser_5d95Request) (response shapes.GetUser_5d95Response, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("get-user is not written yet")
}

// GetUser_bf1e serves get_user.
func (server) GetUser_bf1e(ctx context.Context, request shapes.GetUser_bf1eRequest) (response shapes.GetUser_bf1eResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("get_user is not written yet")
}

// GetUser_e28e serves getUser.
func (server) GetUser_e28e(ctx context.Context, request shapes.GetUser_e28eRequest) (response shapes.GetUser_e28eResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("getUser is not written yet")
}

// X3dRender serves 3d-render.
func (server) X3dRender(ctx context.Context, request shapes.X3dRenderRequest) (response shapes.X3dRenderResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("3d-render is not written yet")
}

// Import serves import.
func (server) Import(ctx context.Context, request shapes.ImportRequest) (response shapes.ImportResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("import is not written yet")
}

// Close serves close.
func (server) Close(ctx context.Context, request shapes.CloseRequest) (response shapes.CloseResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("close is not written yet")
}

// Serve serves serve.
func (server) Serve(ctx context.Context, request shapes.ServeRequest) (response shapes.ServeResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("serve is not written yet")
}

// Names serves names.
func (server) Names(ctx context.Context, request shapes.NamesRequest) (response shapes.NamesResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("names is not written yet")
}

// Enums serves enums.
func (server) Enums(ctx context.Context, request shapes.EnumsRequest) (response *shapes.EnumsResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("enums is not written yet")
}

// Corners serves corners.
func (server) Corners(ctx context.Context, request *shapes.CornersRequest) (response shapes.CornersResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("corners is not written yet")
}

// Merges serves merges.
func (server) Merges(ctx context.Context, request shapes.MergesRequest) (response shapes.MergesResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("merges is not written yet")
}

// Annotated serves annotated.
func (server) Annotated(ctx context.Context, request shapes.AnnotatedRequest) (response shapes.AnnotatedResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("annotated is not written yet")
}

// Inherited serves inherited.
func (server) Inherited(ctx context.Context, request shapes.InheritedRequest) (response shapes.InheritedResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("inherited is not written yet")
}

// A1_f55f serves a1.
func (server) A1_f55f(ctx context.Context, request shapes.A1_f55fRequest) (response shapes.A1_f55fResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("a1 is not written yet")
}

// A1_2f8f serves a-1.
func (server) A1_2f8f(ctx context.Context, request shapes.A1_2f8fRequest) (response shapes.A1_2f8fResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("a-1 is not written yet")
}

// Literal serves literal.
func (server) Literal(ctx context.Context, request shapes.LiteralRequest) (response shapes.LiteralResponse, err error) {
	// Write it here. What sdk.Fail returns is for the caller; any other error stays in the log.
	return response, sdk.Fail("literal is not written yet")
}
