package controlplane

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/internal/replica"
)

// part is what random documents have in one place: one of the values, or some of them where the place is a list.
type part struct {
	path   string
	values []string
	// often is how many of a hundred documents have it.
	often int
	list  bool
}

// documentParts are the values that random documents are made of: plain ones, those at the borders of each rule,
// and some beyond. CEL expressions and extra arguments that quorate does not judge are right, because only the
// programs can say where one is not. FOLDER is the test's own, with the files that a document may name.
var documentParts = []part{
	{"name", []string{
		"prod-1", "a", "42", "x" + strings.Repeat("-", 61) + "y", strings.Repeat("z", 64), "Prod", "a.b",
	}, 100, false},
	{"endpoint.externalIP", []string{
		"203.0.113.10", "2001:db8::7", "8.8.8.8", "10.244.0.1", "255.255.255.255", "::ffff:1.2.3.4", "fe80::1",
	}, 80, false},
	{"endpoint.internalIP", []string{"10.128.0.100", "fd00::7", "192.168.1.1", "127.0.0.1", "0.0.0.0"}, 50, false},
	{"endpoint.dnsNames", []string{
		"api.prod-1.example.com", "localhost", "kubernetes", "1.example", "4you", "api.42", "203.0.113.9", "*.x",
		"xn--bcher-kva.example", strings.Repeat("a.", 126) + "b", strings.Repeat("a.", 127) + "b", "A.example",
		"a_b.example",
		"0x7f.example",
	}, 60, true},
	{"endpoint.port", []string{
		"443", "6443", "1", "65535", "65536", "10259", "10270", "0443", "8443.0", "30000",
	}, 40, false},
	{"record.url", []string{"gs://example-prod-1-record", "gs://b?endpoint=http://127.0.0.1:1"}, 100, false},
	{"seal.key", []string{"gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k"}, 100, false},
	{"compute.endpoint", []string{"http://169.254.169.253:8080/compute/v1/"}, 10, false},
	{"replicas", []string{"1", "3", "7", "8", "2.9"}, 30, false},
	{"gce", []string{
		"{project: p-1, region: us-central1, zones: [us-central1-a], image: i, " +
			"serviceAccount: a@p-1.iam.gserviceaccount.com}",
		"{project: p-1, region: us-central1, zones: [us-central1-a, us-central1-b], machineType: n2-standard-4, " +
			"image: family/masters, network: n, subnetwork: s, serviceAccount: a@p-1.iam.gserviceaccount.com, " +
			"bootDisk: {type: pd-ssd, sizeGB: 10}, dataDisk: {type: pd-balanced, sizeGB: 100}, tags: [master], " +
			"labels: {team: a}, loadBalancer: {type: external, onDemand: true, name: lb}, " +
			"firewall: {apiSources: [10.0.0.0/8]}}",
		"{project: p-1, region: us-central1, zones: [europe-west1-b], image: i, serviceAccount: a, " +
			"loadBalancer: {type: internal, onDemand: true, name: A}}",
	}, 20, false},
	{"kubelet", []string{
		"{watch: false}", "{unit: kubelet.service, runtimeUnit: containerd.service}",
		"{runtimeSocket: /run/containerd/containerd.sock, healthPort: 10248}",
		"{answerWithin: 10s, misses: 3, startWithin: 5m}", "{healthPort: 0}", "{unit: kubelet}", "{misses: 1}",
		"{answerWithin: 61s}", "{runtimeSocket: run/x.sock}",
	}, 30, false},
	{"network.serviceCIDRs", []string{
		"10.96.0.0/16", "10.0.0.0/8", "172.20.0.0/29", "172.20.0.0/30", "172.20.255.248/29", "fd00:10:96::/112",
		"fd00:10:96::/64", "fd00:10:96::/125", "fd00:10:96::/63", "192.168.0.255/32",
	}, 60, true},
	{"network.podCIDR", []string{
		"10.244.0.0/16", "10.0.0.0/8", "8.0.0.0/7", "10.244.0.0/24", "10.244.0.0/25", "fd00:10::/48", "fd00:10::/40",
		"fd00:10::/64", "fd00:10::/96", "169.254.128.0/24", "10.244.0.0/26",
	}, 60, false},
	{"network.dnsDomain", []string{
		"cluster.local", "local", "corp.example", "corp.1", "1", strings.Repeat("a.", 114) + "bc",
		strings.Repeat("a.", 115) + "b", "UP.local",
	}, 40, false},
	{"etcd.dataDir", []string{"/srv/etcd", "/srv/../etc"}, 20, false},
	{"etcd.dataDisk", []string{"master-pd"}, 20, false},
	{"etcd.quotaBytes", []string{"16777216", "17179869184", "1"}, 20, false},
	{"etcd.heartbeat", []string{"10ms", "100ms", "9ms"}, 20, false},
	{"etcd.election", []string{"1s", "50s", "51s"}, 20, false},
	{"etcd.catchUpEntries", []string{"5000", "1000000", "4999"}, 20, false},
	{"etcd.snapshots.interval", []string{"5m", "24h"}, 20, false},
	{"etcd.snapshots.hourly", []string{"1h", "168h"}, 20, false},
	{"etcd.snapshots.daily", []string{"2160h", "90000h"}, 20, false},
	{"components.kube-apiserver", []string{
		`{extraArgs: [--event-ttl=2h, --v=4, --goaway-chance=0, --enable-admission-plugins=AlwaysPullImages]}`,
		`{extraArgs: [--tls-min-version=VersionTLS13, --profiling=0, --service-account-lookup]}`,
		`{extraArgs: ["--disable-admission-plugins=DefaultStorageClass,Priority"], env: {GOMAXPROCS: "2"}}`,
		`{extraArgs: [--service-account-issuer=https://a.example.com,
		  --service-account-issuer=https://accounts.example.com]}`,
		`{extraArgs: [--audit-log-maxage=1, --max-requests-inflight=10, --kubelet-preferred-address-types=Hostname,
		  --allow-privileged=false]}`,
		`{extraArgs: [--enable-bootstrap-token-auth=false, --enable-aggregator-routing=false,
		  "--tls_cipher_suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]}`,
		`{extraArgs: ["--authentication-token-webhook-config-file=FOLDER/webhook.kubeconfig",
		  --authentication-token-webhook-version=v1]}`,
		`{extraArgs: [--oidc-issuer-url=https://a.example.com, --oidc-client-id=x]}`,
		`{extraArgs: ["--authorization-mode=RBAC"]}`, `{extraArgs: ["--authorization-webhook-version=v1"]}`,
		`{extraArgs: ["--bind-address =::"]}`, `{extraArgs: [--anonymous-auth=false]}`,
		`{extraArgs: [--tls-min-version=VersionTLS10]}`, `{elect: self}`, `{elect: agent}`, `{enabled: false}`,
	}, 40, false},
	{"components.kube-controller-manager", []string{
		`{extraArgs: [--node-cidr-mask-size=26]}`, `{extraArgs: [--node-cidr-mask-size=112]}`,
		`{extraArgs: [--node-cidr-mask-size-ipv4=25]}`, `{extraArgs: [--node-cidr-mask-size-ipv6=80]}`,
		`{extraArgs: [--node-cidr-mask-size=24, --node_cidr_mask_size_ipv4=24]}`,
		`{extraArgs: [--allocate-node-cidrs=false]}`, `{extraArgs: ["--controllers=*,-node-ipam-controller"]}`,
		`{extraArgs: ["--controllers=*"]}`, `{extraArgs: [--cluster-signing-duration=1m, --v=4, --profiling=false]}`,
		`{extraArgs: [--cluster-signing-duration=91d]}`,
		`{extraArgs: [--kube-api-qps=50, --kube-api-burst=60, --tls-min-version=VersionTLS13,
		  --authentication-skip-lookup=false]}`,
		`{extraArgs: [--leader-elect=false]}`, `{enabled: false}`,
	}, 40, false},
	{"components.kube-scheduler", []string{
		`{extraArgs: [--v=3], env: {GODEBUG: madvdontneed=1}}`,
		`{extraArgs: [--kube-api-qps=50, --tls-min-version=VersionTLS13]}`,
		`{resources: {memoryMaxBytes: 1073741824, memoryHighBytes: 805306368, cpuWeight: 50}}`,
		`{resources: {memoryMaxBytes: 16777216, memoryHighBytes: 16777217}}`, `{resources: {cpuWeight: 10001}}`,
		`{extraArgs: [--config=/etc/scheduler.yaml]}`, `{enabled: false, binary: /opt/kube-scheduler}`,
	}, 30, false},
	{"components.cluster-autoscaler", []string{
		`{enabled: true, extraArgs: ["--nodes=1:10:g"]}`, `{enabled: true, probe: {url: "http://127.0.0.1:8085/"}}`,
	}, 20, false},
	{"components.ccm", []string{
		`{binary: /usr/local/bin/ccm, probe: {url: "https://127.0.0.1:10258/healthz"}, env: {TOKEN: x}}`,
		`{binary: /usr/local/bin/ccm, probe: {url: "https://127.0.0.1:99999/healthz"}}`,
		`{binary: /usr/local/bin/ccm}`,
	}, 20, false},
	{"election", []string{"fast", "slow", "quick"}, 30, false},
	{"survivors", []string{"restore", "wait"}, 20, false},
	{"encryptionAtRest", []string{"true", "false", "off"}, 40, false},
	{"addons.folder", []string{"/etc/quorate/addons", "addons", "/etc/../addons"}, 20, false},
	{"addons.examples", []string{"coredns", "kube-proxy", "metadata-guard", "calico"}, 20, true},
	{"addons.version", []string{"1", "12", "-1"}, 20, false},
	{"auditPolicy", []string{"FOLDER/audit.yaml", "audit.yaml"}, 20, false},
	{"jwt", []string{
		`{issuer: {url: "https://accounts.example.com", audiences: [a]},
		  claimMappings: {username: {claim: sub, prefix: ""}}}`,
		`{issuer: {url: "https://b.example.com/b", discoveryURL: "https://c.example.com/d", audiences: [a, b],
		    audienceMatchPolicy: MatchAny, certificateAuthority: "CA"},
		  claimMappings: {username: {expression: claims.sub}, groups: {claim: groups, prefix: "b:"}, uid: {claim: sub}}}`,
		`{issuer: {url: "https://d.example.com", audiences: [a], audienceMatchPolicy: MatchAny},
		  claimValidationRules: [{claim: hd, requiredValue: example.com}, {claim: x}, {expression: "claims.y == 1", message: no}],
		  claimMappings: {username: {claim: email, prefix: "d:"}, groups: {expression: claims.groups},
		    uid: {expression: claims.sub},
		    extra: [{key: example.com/a, valueExpression: claims.a}, {key: a.example/b_c, valueExpression: "'x'"}]},
		  userValidationRules: [{expression: "!user.username.startsWith('system:')", message: no},
		    {expression: "user.uid != ''"}]}`,
		`{issuer: {url: "https://e.example.com", audiences: [a, b]},
		  claimMappings: {username: {claim: sub, prefix: ""}}}`,
		`{issuer: {url: "https://f.example.com", audiences: [a]}, claimMappings: {username: {claim: sub}}}`,
		`{issuer: {url: "https://g.example.com", audiences: [a]},
		  claimMappings: {username: {expression: claims.sub}, extra: [{key: k8s.io/a, valueExpression: claims.a}]}}`,
		`{issuer: {url: "https://kubernetes.default.svc.cluster.local", audiences: [a]},
		  claimMappings: {username: {claim: sub, prefix: ""}}}`,
		`{issuer: {url: "https://a.example.com", audiences: [a]},
		  claimMappings: {username: {claim: sub, prefix: "a#"}}}`,
	}, 50, true},
	{"authorization.webhooks", []string{
		`{name: one, server: "https://authz.example.com/review", failurePolicy: Deny}`,
		`{name: two, server: "https://10.0.0.1:8443", failurePolicy: NoOpinion, certificateAuthority: "CA",
		  tokenFile: FOLDER/token, timeout: 30s, authorizedTTL: 1ns, unauthorizedTTL: 24h,
		  subjectAccessReviewVersion: v1beta1,
		  matchConditions: [{expression: "request.user != 'x'"}, {expression: "has(request.resourceAttributes)"}]}`,
		`{name: "` + strings.Repeat("w", 63) + `", server: "https://[fd00::1]/", failurePolicy: Deny,
		  clientCertificateFile: FOLDER/client.pem, clientKeyFile: FOLDER/client.pem}`,
		`{name: rbac, server: "https://authz.example.com", failurePolicy: Deny}`,
		`{name: four, server: "http://authz.example.com", failurePolicy: Deny, timeout: 31s}`,
	}, 50, true},
}

// documents makes random documents.
type documents struct {
	*rand.Rand
	// replace puts the test's own things in place of words in capitals.
	replace *strings.Replacer
}

// next is a document that validates, and as what it reads. Of those beside it that do not, it is known that
// something was refused; whether rightly so is for the tables of the packages.
func (d documents) next(t *testing.T) (string, *replica.Cluster) {
	t.Helper()
	for range 10000 {
		root := d.document(t)
		for range d.IntN(3) {
			d.mutate(root)
		}
		text, err := yaml.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		c, err := replica.Load(replica.Source{Name: "random", Data: text})
		if err == nil && Validate(c) == nil {
			return string(text), c
		}
	}
	t.Fatal("of ten thousand documents none is valid")
	return "", nil
}

// document has a random choice of all parts.
func (d documents) document(t *testing.T) *yaml.Node {
	t.Helper()
	root := &yaml.Node{Kind: yaml.MappingNode}
	put(root, "apiVersion", scalar(replica.APIVersion))
	put(root, "kind", scalar(replica.Kind))
	for _, p := range documentParts {
		if d.IntN(100) >= p.often {
			continue
		}
		value := d.choice(t, p.values)
		if p.list {
			list := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{value}}
			for d.IntN(3) == 0 {
				list.Content = append(list.Content, d.choice(t, p.values))
			}
			value = list
		}
		put(root, p.path, value)
	}
	return root
}

// choice is one of the values, the first ones more often: they are those that are valid by themselves.
func (d documents) choice(t *testing.T, values []string) *yaml.Node {
	t.Helper()
	at := min(d.IntN(len(values)), d.IntN(len(values)))
	return parsed(t, d.replace.Replace(values[at]))
}

// parsed is a value as a node: a mapping is written as YAML, all else as it is.
func parsed(t *testing.T, value string) *yaml.Node {
	t.Helper()
	if !strings.HasPrefix(value, "{") {
		return scalar(value)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(value), &doc); err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	return doc.Content[0]
}

func scalar(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// put sets a field below nested mappings, which it makes.
func put(mapping *yaml.Node, path string, value *yaml.Node) {
	name, rest, nested := strings.Cut(path, ".")
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name && nested {
			put(mapping.Content[i+1], rest, value)
			return
		}
	}
	if nested {
		below := &yaml.Node{Kind: yaml.MappingNode}
		put(below, rest, value)
		value = below
	}
	mapping.Content = append(mapping.Content, scalar(name), value)
}

// mutate changes one thing: a field goes, an element goes or comes twice, or a value is written a little otherwise.
func (d documents) mutate(root *yaml.Node) {
	nodes := nodesOf(root, "")
	n := nodes[d.IntN(len(nodes))]
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) > 0:
		at := d.IntN(len(n.Content)/2) * 2
		n.Content = slices.Delete(n.Content, at, at+2)
	case n.Kind == yaml.SequenceNode && len(n.Content) > 0:
		at := d.IntN(len(n.Content))
		if d.IntN(2) == 0 {
			n.Content = slices.Insert(n.Content, at, n.Content[at])
		} else {
			n.Content = slices.Delete(n.Content, at, at+1)
		}
	case n.Kind == yaml.ScalarNode:
		n.Value = d.otherwise(n.Value)
	}
}

// nodesOf are the nodes that may be changed. What only a program can judge is left as it is.
func nodesOf(n *yaml.Node, path string) []*yaml.Node {
	for _, theirs := range []string{"xpression", "extraArgs", "env", "File", "auditPolicy", "apiVersion", "kind"} {
		if strings.HasSuffix(path, theirs) {
			return nil
		}
	}
	out := []*yaml.Node{n}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			out = append(out, nodesOf(n.Content[i+1], path+"."+n.Content[i].Value)...)
		}
	case yaml.SequenceNode:
		for _, element := range n.Content {
			out = append(out, nodesOf(element, path)...)
		}
	}
	return out
}

// otherwise writes a value with one character more, less or another one, or around it what people and programs put
// there.
func (d documents) otherwise(value string) string {
	with, s := []rune("09aZ-._:/ %?#@\t\x00ü*,'\""), []rune(value)
	at, one := d.IntN(len(s)+1), with[d.IntN(len(with))]
	end := min(at+1, len(s))
	switch d.IntN(8) {
	case 0:
		return string(slices.Insert(s, at, one))
	case 1:
		return string(slices.Delete(s, at, end))
	case 2:
		return string(slices.Replace(s, at, end, one))
	case 3:
		return strings.ToUpper(value)
	case 4:
		return value + []string{".", " ", "/", ":1", ":0", "\n", ".1", "/64"}[d.IntN(8)]
	case 5:
		return []string{" ", "-", ".", "0", "https://"}[d.IntN(5)] + value
	case 6:
		return ""
	default:
		return value + value
	}
}

// TestRandomDocumentsHaveEveryField: a field of the type that no part has would never be tried, and a part that is
// no field would have each of its documents refused.
func TestRandomDocumentsHaveEveryField(t *testing.T) {
	have := map[string]bool{"apiVersion": true, "kind": true}
	for _, p := range documentParts {
		for _, value := range p.values {
			leavesOf(parsed(t, value), p.path, have)
		}
	}
	var walk func(path string, rt reflect.Type)
	walk = func(path string, rt reflect.Type) {
		for rt.Kind() == reflect.Pointer || rt.Kind() == reflect.Slice {
			rt = rt.Elem()
		}
		switch {
		case rt.Kind() == reflect.Struct:
			for f := range rt.Fields() {
				name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
				walk(strings.TrimPrefix(path+"."+name, "."), f.Type)
			}
		case rt.Kind() == reflect.Map && rt.Elem().Kind() == reflect.Struct:
			walk(path+".*", rt.Elem())
		case !have[path]:
			t.Errorf("no random document has %s", path)
		}
		delete(have, path)
	}
	walk("", reflect.TypeFor[replica.Cluster]())
	if len(have) > 0 {
		t.Errorf("these are no fields: %v", slices.Sorted(maps.Keys(have)))
	}
}

// leavesOf notes the paths of a value's fields; components are one, whatever their name, and so are variables.
func leavesOf(n *yaml.Node, path string, have map[string]bool) {
	switch {
	case n.Kind == yaml.SequenceNode:
		for _, element := range n.Content {
			leavesOf(element, path, have)
		}
	case n.Kind == yaml.MappingNode && !strings.HasSuffix(path, ".env") && path != "gce.labels":
		for i := 0; i+1 < len(n.Content); i += 2 {
			leavesOf(n.Content[i+1], path+"."+n.Content[i].Value, have)
		}
	default:
		if parts := strings.Split(path, "."); parts[0] == "components" {
			path = fmt.Sprintf("components.*.%s", strings.Join(parts[2:], "."))
		}
		have[path] = true
	}
}

// shares counts what the documents had, for people: a test of much the same document says little.
func shares(seen map[string]int, text string) {
	var doc map[string]any
	if yaml.Unmarshal([]byte(text), &doc) != nil {
		return
	}
	for name := range doc {
		seen[name]++
	}
}
