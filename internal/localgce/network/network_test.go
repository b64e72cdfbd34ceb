package network

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/quorate/quorate/internal/localgce/host"
)

func TestALinkIsLookedForInTheThreadsOwnNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	ctx, ns := t.Context(), fmt.Sprintf("lgcetest%d", os.Getpid())
	if _, err := host.Run(ctx, "ip", "netns", "add", ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Delete(context.Background(), ns); err != nil {
			t.Error(err)
		}
	})
	if err := IP(ctx, ns, "link add name lgcetest0 type veth peer name lgcetest1"); err != nil {
		t.Fatal(err)
	}
	inside := false
	err := In(ns, func() error { inside = LinkIsHere("lgcetest0"); return nil })
	if err != nil || !inside || LinkIsHere("lgcetest0") {
		t.Errorf("inside %v, outside %v, %v", inside, LinkIsHere("lgcetest0"), err)
	}
}
