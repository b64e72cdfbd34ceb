package cri

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// fake is a runtime that answers as a test wants.
type fake struct {
	runtime.UnimplementedRuntimeServiceServer
	status func(ctx context.Context) (*runtime.StatusResponse, error)
	list   func(ctx context.Context) (*runtime.ListPodSandboxResponse, error)
}

func (f fake) Status(ctx context.Context, _ *runtime.StatusRequest) (*runtime.StatusResponse, error) {
	return f.status(ctx)
}

func (f fake) ListPodSandbox(ctx context.Context, _ *runtime.ListPodSandboxRequest) (*runtime.ListPodSandboxResponse,
	error) {
	return f.list(ctx)
}

// serve answers on a socket until the test's end.
func serve(t *testing.T, f fake) Runtime {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	runtime.RegisterRuntimeServiceServer(s, f)
	go s.Serve(l)
	t.Cleanup(s.Stop)
	return Runtime{Socket: path}
}

func ready(network bool) func(context.Context) (*runtime.StatusResponse, error) {
	return func(context.Context) (*runtime.StatusResponse, error) {
		return &runtime.StatusResponse{Status: &runtime.RuntimeStatus{Conditions: []*runtime.RuntimeCondition{
			{Type: runtime.RuntimeReady, Status: true},
			{Type: runtime.NetworkReady, Status: network, Reason: "NetworkPluginNotReady", Message: "no file"},
		}}}, nil
	}
}

func lists(context.Context) (*runtime.ListPodSandboxResponse, error) {
	return &runtime.ListPodSandboxResponse{}, nil
}

// hangs does not answer before its caller has given up.
func hangs[T any](ctx context.Context) (none T, err error) {
	<-ctx.Done()
	return none, ctx.Err()
}

func TestAsk(t *testing.T) {
	silent := filepath.Join(t.TempDir(), "silent")
	l, err := net.Listen("unix", silent) // nobody takes a connection out of its queue
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) // the cases run after this function
	for name, tc := range map[string]struct {
		runtime   Runtime
		network   string
		connected bool
		err       string // is in it
	}{
		"it is well":        {serve(t, fake{status: ready(true), list: lists}), "", true, ""},
		"it has no network": {serve(t, fake{status: ready(false), list: lists}), "no file", true, ""},
		"it hangs at its status": {serve(t, fake{status: hangs[*runtime.StatusResponse], list: lists}), "",
			true, "its status"},
		"it hangs at its list": {serve(t,
			fake{status: ready(true), list: hangs[*runtime.ListPodSandboxResponse]}), "", true, "the list"},
		"it takes connections and is silent": {Runtime{Socket: silent}, "", true, "its status"},
		"nobody listens": {Runtime{Socket: filepath.Join(t.TempDir(), "none")}, "", false,
			"no such file"},
		"it refuses, which shows that it lives": {serve(t, fake{
			status: func(context.Context) (*runtime.StatusResponse, error) { return nil, errors.New("not now") },
			list:   lists}), "", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			network, connected, err := tc.runtime.Ask(ctx)
			if connected != tc.connected || !strings.Contains(network, tc.network) ||
				(network == "") != (tc.network == "") {
				t.Errorf("network %q, connected %t", network, connected)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("the error is %v, want %q", err, tc.err)
			}
		})
	}
}
