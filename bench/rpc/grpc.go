package main

import (
	"context"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// echoMethod is a unary method whose request and response are one bytes field.
const echoMethod = "/bench.Callee/Echo"

func serveGRPC(string) (*callee, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Callee", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Echo", Handler: echo}},
	}, struct{}{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	return &callee{address: l.Addr().String(), stop: func() error { s.Stop(); return <-served }}, nil
}

func echo(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	in := new(wrapperspb.BytesValue)
	if err := decode(in); err != nil {
		return nil, err
	}
	return in, nil
}

type grpcClient struct{ conn *grpc.ClientConn }

func dialGRPC(address string) (client, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return grpcClient{conn}, nil
}

// call has a deadline, which gRPC takes from a context and sends along.
func (c grpcClient) call(payload []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	out := new(wrapperspb.BytesValue)
	if err := c.conn.Invoke(ctx, echoMethod, &wrapperspb.BytesValue{Value: payload}, out); err != nil {
		return err
	}
	if len(out.GetValue()) != len(payload) {
		return errWrongReply
	}
	return nil
}

func (c grpcClient) close() error { return c.conn.Close() }
