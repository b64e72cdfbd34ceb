// Package examples holds add-ons that quorate brings: their manifests, filled with what the Cluster document says of
// the network. They are examples of a master's image: they name container images that the image brings, not a
// registry's. To change one, print it with `quorate addons examples`, edit it, and use addons.folder.
//
//	coredns          the cluster's DNS
//	kube-proxy       Services' addresses, by nftables
//	metadata-guard   pods get no tokens from the metadata server; DNS and time they do get
//
// The same document gives the same bytes, so that all masters hold one set. The package is pure: who wants a folder of
// them writes it.
package examples

import (
	"bytes"
	"embed"
	"fmt"
	"net/netip"
	"text/template"

	"github.com/quorate/quorate/internal/replica"
)

// edition is the version of the manifests: it rises with every change of them, so that a master with the image before
// does not change them back. A test holds it to their bytes.
const edition = 1

// imageTag is that of every image. It does not rise with each image of a master: a node runs what its own image
// brought.
const imageTag = "1"

//go:embed manifests/*.yaml
var manifests embed.FS

// values are what the manifests are filled with.
type values struct {
	Domain, PodCIDR string
	DNS, Endpoint   netip.Addr
	Port            int
}

// Image is the name of a container image that a master's image brings.
func (values) Image(name string) string { return "quorate.local/" + name + ":" + imageTag }

// Version is that of the set, as its file has it. The document's number comes first: raising it outranks every edition.
func Version(c *replica.Cluster) string { return fmt.Sprintf("%d.%d\n", c.Addons.Version, edition) }

// Manifest is an example of replica.AddonExamples as one YAML stream, for a document that has been defaulted and
// validated.
func Manifest(c *replica.Cluster, name string) []byte {
	t := template.Must(template.ParseFS(manifests, "manifests/"+name+".yaml"))
	addresses := c.EndpointAddresses()
	v := values{
		Domain: c.Network.DNSDomain, PodCIDR: c.Network.PodCIDR, DNS: replica.DNSAddress(c),
		// the internal one, if there is one: a node needs no way to the outside
		Endpoint: addresses[len(addresses)-1], Port: c.Endpoint.Port,
	}
	var out bytes.Buffer
	if err := t.Execute(&out, v); err != nil {
		panic(err) // a buffer takes all, and a test fills every manifest
	}
	return out.Bytes()
}

// Set is all examples of the document as one YAML stream, in the document's order.
func Set(c *replica.Cluster) []byte {
	var out bytes.Buffer
	for _, name := range c.Addons.Examples {
		fmt.Fprintf(&out, "---\n%s", Manifest(c, name))
	}
	return out.Bytes()
}
