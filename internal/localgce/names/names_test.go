package names

import "testing"

func TestNamesFitTheKernel(t *testing.T) {
	n := For("/some/where")
	if len(n.HostLink()) > 15 {
		t.Errorf("link name %s has more than 15 characters", n.HostLink())
	}
	if n == For("/some/where/else") || n.HostLink() == For("/else").HostLink() {
		t.Error("two folders have one name")
	}
	if !n.Owns(n.Fabric()) || !n.Owns(n.VM("a")) || n.Owns(n.Fabric()+"1") || n.Owns("lgce-000000-a") {
		t.Error("a project owns its own namespaces only")
	}
}
