// Package cri asks a container runtime whether it works, as the kubelet would: over its socket, in the words of the
// container runtime interface.
//
// An answer of any kind shows that the runtime lives. It does not start, stop or list containers for anybody.
package cri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Runtime is one container runtime. Each question has a connection of its own: one that hung is not asked again.
type Runtime struct {
	// Socket is the path of its unix socket.
	Socket string
}

// Ask asks what the kubelet relies on: the status, and the list of the pods' sandboxes. network is why there is no
// network for pods; empty: there is one. connected says that the socket took a connection, also where the answer did
// not come.
func (r Runtime) Ask(ctx context.Context) (network string, connected bool, err error) {
	client, err := grpc.NewClient("passthrough:///runtime", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", r.Socket)
		}))
	if err != nil {
		return "", false, err
	}
	defer client.Close()
	if connected, err = r.listens(ctx); !connected {
		return "", false, err
	}
	network, err = ask(ctx, runtime.NewRuntimeServiceClient(client))
	return network, true, err
}

// listens says that the socket takes connections. One whose queue is full does: nobody takes them out of it.
func (r Runtime) listens(ctx context.Context) (bool, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", r.Socket)
	if err != nil {
		return errors.Is(err, syscall.EAGAIN), err
	}
	return true, conn.Close()
}

func ask(ctx context.Context, c runtime.RuntimeServiceClient) (network string, err error) {
	found, err := c.Status(ctx, &runtime.StatusRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return network, silence("its status", err)
	}
	for _, condition := range found.GetStatus().GetConditions() {
		if condition.GetType() == runtime.NetworkReady && !condition.GetStatus() {
			network = fmt.Sprintf("%s: %s", condition.GetReason(), condition.GetMessage())
		}
	}
	// No sandbox has this id: the list is walked, and nothing is sent.
	none := &runtime.PodSandboxFilter{Id: "quorate-asks"}
	_, err = c.ListPodSandbox(ctx, &runtime.ListPodSandboxRequest{Filter: none}, grpc.WaitForReady(true))
	return network, silence("the list of its pods", err)
}

// silence is nil where the runtime answered, with whatever error of its own.
func silence(what string, err error) error {
	switch status.Code(err) {
	case codes.OK:
		return nil
	case codes.DeadlineExceeded, codes.Canceled, codes.Unavailable:
		return fmt.Errorf("%s did not come: %w", what, err)
	}
	return nil
}
