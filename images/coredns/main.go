// Command coredns is CoreDNS with the plugins of a cluster's DNS, and no others. Upstream's program has 60 and brings
// the clouds' libraries along: it is larger, and each is one more thing to patch. A Corefile that names another plugin
// is refused by its name.
package main

import (
	"slices"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	// What answers: the cluster's names, and for all others the machine's own name server.
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/kubernetes"

	// What keeps it answering: answers from memory, in turn, and an end where two name servers ask each other.
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/loop"

	// What the kubelet and people need: probes, metrics, errors in the log, a Corefile that changes in place.
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

// plugins are the ones above by the names that a Corefile has for them.
var plugins = []string{"cache", "errors", "forward", "health", "kubernetes", "loadbalance", "loop", "prometheus",
	"ready", "reload"}

func main() {
	// The order of the rest is upstream's: each plugin hands on to the next.
	dnsserver.Directives = slices.DeleteFunc(dnsserver.Directives, func(name string) bool {
		return !slices.Contains(plugins, name)
	})
	coremain.Run()
}
