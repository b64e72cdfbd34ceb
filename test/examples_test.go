package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/localgce/tree"
)

// tokenPath is what a pod must not read: with it, it is the master's service account.
const tokenPath = "http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token"

// askToken prints the answer's first bytes, or fails within seconds.
const askToken = "curl -sS -m 5 -H Metadata-Flavor:Google " + tokenPath

// askTime sends a question of NTP in one datagram, and prints the length of the answer.
const askTime = `timeout 5 bash -c '
	exec 3<>/dev/udp/169.254.169.254/123
	{ printf "\043"; head -c 47 /dev/zero; } | dd bs=48 iflag=fullblock status=none >&3
	dd bs=48 count=1 status=none <&3 | wc -c'`

// askName sends a question for metadata.google.internal in one datagram, and prints the length of the answer.
const askName = `timeout 5 bash -c '
	exec 3<>/dev/udp/169.254.169.254/53
	question="\1\1\1\0\0\1\0\0\0\0\0\0\10metadata\6google\10internal\0\0\1\0\1"
	printf "$question" | dd bs=512 iflag=fullblock status=none >&3
	dd bs=512 count=1 status=none <&3 | wc -c'`

// withoutGuard and withGuard are the document's add-ons, one after the other.
const (
	withoutGuard = "addons: {examples: [coredns, kube-proxy]}\n"
	withGuard    = "addons: {examples: [coredns, kube-proxy, metadata-guard], version: 2}\n"
)

// TestExampleAddons takes a master of the baked image to a node with DNS, Services and a guarded metadata server, by
// its document alone and without a registry. An image that was baked with the examples boots as it is. The cases build
// on each other.
func TestExampleAddons(t *testing.T) {
	images := exampleImages(t)
	c := begin(t, plan{vms: []string{"master-a"}, image: true, containerImages: images, asBaked: images == "",
		addons: withoutGuard, namesAndTime: true})
	for _, scenario := range []struct {
		name string
		do   func(*testing.T, *cluster)
	}{
		{"the examples of the document are in place and ready", examplesReady},
		{"a pod finds Services and the world's names through CoreDNS", podsFindNames},
		{"a Service's address reaches its pods, also those that are new", servicesReachPods},
		{"without the guard a pod reads the master's token", podsReadTokens},
		{"with the guard in the document no pod reads it", guardedToken},
		{"the node, and pods of the node's network, go on reading it", hostReadsToken},
		{"a pod gets DNS and time from the same address", namesAndTimePass},
		{"the guard comes back where somebody flushes the rules", guardComesBack},
		{"it refuses what the node forwards to a metadata server at the end of a link", guardForwards},
		{"the guard holds after a power cut, too", guardAfterReboot},
		{"Services and the guard outlive kube-proxy's pod", outliveKubeProxy},
	} {
		ok := t.Run(scenario.name, func(t *testing.T) {
			defer func() { c.tell(t); c.tellUnits(t); c.tellPods(t) }() // a Cleanup comes when t's context has ended
			scenario.do(t, c)
		})
		if !ok {
			t.Fatal("the cases after this one need what it shows")
		}
	}
}

// exampleImages packs the container images as a bake does, of the programs in bin/ and of the baked image's packages,
// into a folder. It is empty where the baked image has them.
func exampleImages(t *testing.T) string {
	t.Helper()
	var boots localgce.Config
	if err := boots.BootImage(imageTree(t)); err != nil {
		t.Fatal(err)
	}
	root, err := tree.Open(t.Context(), boots.Cache, boots.Image, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := os.Stat(filepath.Join(root.Path, "usr/share/quorate/images/coredns.tar")); err == nil {
		of, err := os.ReadFile(filepath.Join(root.Path, "usr/lib/quorate/image.json"))
		t.Logf("the image boots as it was baked: %s %v", of, err)
		return ""
	}
	t.Log("the image has no examples: they are put over it, and quorate, of the tree as it is")
	for _, name := range []string{"coredns", "kube-proxy"} {
		if _, err := os.Stat(filepath.Join("..", "bin", name)); err != nil {
			t.Skipf("needs bin/%s: run `make kubernetes coredns` first", name)
		}
	}
	folder := t.TempDir()
	if _, err := run(exec.Command("../images/master/examples.sh", root.Path, "../bin", folder)); err != nil {
		t.Fatal(err)
	}
	return folder
}

// inPod runs a command in a pod of the namespace default.
func (c *cluster) inPod(t *testing.T, pod, command string) (string, error) {
	t.Helper()
	return c.kubectl(t, "", "exec", pod, "--", "/usr/bin/sh", "-c", command)
}

// tellPods prints, where a test has failed, what the cluster says of its pods.
func (c *cluster) tellPods(t *testing.T) {
	t.Helper()
	if !t.Failed() || c.Project == nil {
		return
	}
	for _, args := range [][]string{{"get", "pods", "-A", "-o", "wide"}, {"get", "events", "-A"},
		{"logs", "-n", "kube-system", "-l", "k8s-app", "--prefix", "--tail", "20"}} {
		out, err := c.kubectl(t, "", args...)
		t.Logf("%s: %v\n%s", args, err, out)
	}
	out, err := c.quorateIn(t, "status")
	t.Logf("%v\n%s", err, out)
}

// quorateIn runs quorate on the master.
func (c *cluster) quorateIn(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd, err := c.Command(t.Context(), c.vms[0], append([]string{"quorate"}, args...)...)
	c.must(t, err)
	return run(cmd)
}

// addonsStand waits until the manager says that a set is in place.
func (c *cluster) addonsStand(t *testing.T, version string) {
	t.Helper()
	await(t, "the add-ons of version "+version, func() error {
		s, err := c.status(c.vms[0])
		switch {
		case err != nil:
			return err
		case s.Addons == nil:
			return fmt.Errorf("nothing is said of add-ons: %+v", s.Blocked)
		case string(s.Addons.Version) != version || s.Addons.Objects == 0 || s.Addons.Ready != s.Addons.Objects:
			return fmt.Errorf("%+v", *s.Addons)
		}
		return nil
	})
}

func examplesReady(t *testing.T, c *cluster) {
	c.awaitWhole(t)
	c.addonsStand(t, "1.1")
	c.mustKubectl(t, "", "apply", "-f", "examples.yaml")
	await(t, "the pods that ask, and the one that is asked", func() error {
		_, err := c.kubectl(t, "", "wait", "--for=condition=Ready", "pods", "--all", "--timeout=5s")
		return err
	})
	for name, want := range map[string]string{"coredns": "2", "kube-proxy": "1"} {
		out := c.mustKubectl(t, "", "get", "pods", "-n", "kube-system", "-o",
			`jsonpath={range .items[*]}{.spec.containers[0].name}{" "}{.status.containerStatuses[0].ready}{"\n"}{end}`)
		if got := strings.Count(out, name+" true\n"); fmt.Sprint(got) != want {
			t.Errorf("%d pods of %s are ready, want %s: %s", got, name, want, out)
		}
	}
	if out, err := c.quorateIn(t, "addons", "diff"); err != nil || !strings.Contains(out, "to do: 0;") {
		t.Errorf("%s %v", out, err)
	}
}

// resolves waits until a pod finds a name's address: right after a start the first answers may be negative, from the
// cache.
func (c *cluster) resolves(t *testing.T, name, address string) {
	t.Helper()
	await(t, name+" is found", func() error {
		out, err := c.inPod(t, "client", "getent ahostsv4 "+name)
		if err == nil && !strings.HasPrefix(out, address+" ") {
			err = fmt.Errorf("%s is %q, want %s", name, out, address)
		}
		return err
	})
}

func podsFindNames(t *testing.T, c *cluster) {
	c.resolves(t, "kubernetes.default.svc", "10.96.0.1")
	c.resolves(t, "web", c.serviceAddress(t))
	c.resolves(t, "web.default.svc.cluster.local", c.serviceAddress(t))
	c.resolves(t, "metadata.google.internal", "169.254.169.254") // the node's own name server knows it
	if out, err := c.inPod(t, "client", "getent ahostsv4 nobody.default.svc.cluster.local"); err == nil {
		t.Errorf("a Service that does not exist is at %s", out)
	}
}

func (c *cluster) serviceAddress(t *testing.T) string {
	t.Helper()
	return c.mustKubectl(t, "", "get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
}

// reached says whether the Service answers, to a pod by its name and to the node by its address.
func (c *cluster) reached(t *testing.T) error {
	t.Helper()
	out, err := c.inPod(t, "client", "curl -sS -m 5 http://web/programs/")
	if err == nil && !strings.Contains(out, "kube-apiserver") {
		err = fmt.Errorf("the Service answers %q", out)
	}
	if err != nil {
		return err
	}
	cmd, err := c.Command(t.Context(), c.vms[0], "curl", "-sS", "-m", "5", "http://"+c.serviceAddress(t)+"/programs/")
	c.must(t, err)
	_, err = run(cmd)
	return err
}

func servicesReachPods(t *testing.T, c *cluster) {
	await(t, "the Service is reached", func() error { return c.reached(t) })
	if rules := c.in(t, c.vms[0], "nft list table ip kube-proxy"); !strings.Contains(rules, c.serviceAddress(t)) {
		t.Errorf("kube-proxy's rules do not know the Service: %s", rules)
	}
	const podIP = "jsonpath={.items[*].status.podIP}"
	before := c.mustKubectl(t, "", "get", "pods", "-l", "app=web", "-o", podIP)
	c.mustKubectl(t, "", "delete", "pods", "-l", "app=web", "--wait")
	await(t, "the Service is reached at another pod", func() error {
		if now := c.mustKubectl(t, "", "get", "pods", "-l", "app=web", "-o", podIP); now == before || now == "" {
			return fmt.Errorf("the pod is at %q, it was at %q", now, before)
		}
		return c.reached(t)
	})
}

func podsReadTokens(t *testing.T, c *cluster) {
	out, err := c.inPod(t, "client", askToken)
	if err != nil || !strings.Contains(out, "access_token") {
		t.Fatalf("so the cases of the guard show nothing: %s %v", out, err)
	}
}

// refused waits until no pod reads a token. It is a clear refusal: who asks does not hang.
func (c *cluster) refused(t *testing.T) {
	t.Helper()
	await(t, "a pod is refused", func() error {
		out, err := c.inPod(t, "client", askToken)
		if err == nil {
			return fmt.Errorf("a pod has read %s", out)
		}
		if !strings.Contains(err.Error(), "curl: (7)") {
			return err
		}
		return nil
	})
}

func guardedToken(t *testing.T, c *cluster) {
	document := strings.Replace(c.document, withoutGuard, withGuard, 1)
	c.must(t, c.SetAttribute("", agent.ClusterAttribute, &document))
	c.in(t, c.vms[0], "systemctl restart quorate") // it reads the document when it starts
	await(t, "whole again", c.whole)
	c.addonsStand(t, "2.1")
	c.refused(t)
}

func hostReadsToken(t *testing.T, c *cluster) {
	if out := c.in(t, c.vms[0], askToken); !strings.Contains(out, "access_token") {
		t.Errorf("a process of the node, as the agent is, gets %s", out)
	}
	if out, err := c.inPod(t, "host-client", askToken); err != nil || !strings.Contains(out, "access_token") {
		t.Errorf("a pod of the node's network gets %s %v", out, err)
	}
}

func namesAndTimePass(t *testing.T, c *cluster) {
	// CoreDNS is a pod, too. A name that it has not been asked yet is in no cache.
	if out, err := c.inPod(t, "client", "getent ahostsv4 new.google.internal"); err == nil ||
		!strings.Contains(err.Error(), "exit code 2") {
		t.Errorf("a name that the world does not have: %s %v", out, err)
	}
	c.resolves(t, "metadata.google.internal", "169.254.169.254")
	if out, err := c.inPod(t, "client", askName); err != nil || strings.TrimSpace(out) == "0" {
		t.Errorf("DNS by UDP: an answer of %q bytes, %v", out, err)
	}
	if out, err := c.inPod(t, "client", "curl -sS -m 5 telnet://169.254.169.254:53 </dev/null"); err != nil {
		t.Errorf("DNS by TCP: %s %v", out, err)
	}
	if out, err := c.inPod(t, "client", askTime); err != nil || strings.TrimSpace(out) != "48" {
		t.Errorf("the answer of NTP has %q bytes, %v", out, err)
	}
}

func guardComesBack(t *testing.T, c *cluster) {
	c.in(t, c.vms[0], "nft delete table inet quorate-metadata-guard")
	c.refused(t)
}

func guardAfterReboot(t *testing.T, c *cluster) {
	vm := c.vms[0]
	// as after an upgrade of the machine's image: the name is there and stands for another image
	const digest = "ctr -n k8s.io images list name==quorate.local/nftables:1 | awk '{ print $3 }'"
	before := c.in(t, vm, digest)
	c.in(t, vm, "ctr -n k8s.io images tag --force quorate.local/coredns:1 quorate.local/nftables:1")
	c.must(t, c.KillVM(t.Context(), vm)) // a stop in order takes as long as pods that do not listen
	c.must(t, c.StartVM(t.Context(), vm))
	await(t, "whole again", c.whole)
	await(t, "the guard's rules", func() error {
		cmd, err := c.Command(t.Context(), vm, "nft", "list", "table", "inet", "quorate-metadata-guard")
		if err == nil {
			_, err = run(cmd)
		}
		return err
	})
	await(t, "the pod that asks", func() error {
		_, err := c.inPod(t, "client", "true")
		return err
	})
	c.refused(t)
	hostReadsToken(t, c)
	await(t, "the Service is reached", func() error { return c.reached(t) })
	if after := c.in(t, vm, digest); after != before {
		t.Errorf("the container image was %s, it is %s", before, after)
	}
}

func outliveKubeProxy(t *testing.T, c *cluster) {
	const services = "nft list map ip kube-proxy service-ips"
	before := c.in(t, c.vms[0], services)
	c.mustKubectl(t, "", "delete", "pods", "-n", "kube-system", "-l", "k8s-app=kube-proxy", "--wait")
	await(t, "the new kube-proxy has written its rules", func() error {
		cmd, err := c.Command(t.Context(), c.vms[0], "curl", "-sS", "-m", "5", "http://127.0.0.1:10249/metrics")
		c.must(t, err)
		out, err := run(cmd)
		if err != nil {
			return err
		}
		const written = `kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} `
		_, at, there := strings.Cut(out, written)
		if !there || strings.HasPrefix(at, "0\n") {
			return fmt.Errorf("its metrics do not have %s", written)
		}
		return nil
	})
	if after := c.in(t, c.vms[0], services); after != before {
		t.Errorf("the Services were %s they are %s", before, after)
	}
	c.must(t, c.reached(t)) // at once: the next full sync may be an hour away
	c.refused(t)
}
