package image

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/localgce"
)

// document is the Cluster of one replica.
const document = `apiVersion: quorate.dev/v1alpha1
kind: Cluster
name: ` + cluster + `
replicas: 1
endpoint:
  externalIP: ` + endpoint + `
record:
  url: gs://` + localgce.BucketName + `?endpoint=http://` + services + `
seal:
  key: base64key://%s
compute:
  endpoint: http://` + services + `/compute/v1/
etcd:
  dataDisk: quorate-data
`

// aDocument is one with a seal key of its own.
func aDocument() string {
	key := make([]byte, 32)
	rand.Read(key)
	return fmt.Sprintf(document, base64.URLEncoding.EncodeToString(key))
}

// aPod runs on the master alone, of the one image that it has without a registry.
const aPod = `apiVersion: v1
kind: Pod
metadata: {name: probe}
spec:
  tolerations: [{operator: Exists}]
  containers: [{name: pause, image: "quorate.local/pause:1", imagePullPolicy: Never}]
`

// node is what the test reads of a Node.
type node struct {
	Spec struct {
		PodCIDR string
		Taints  []taint
	}
	Status struct {
		Conditions []struct{ Type, Status string }
	}
}

type taint struct{ Key, Effect string }

func (n node) ready() bool {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// The disk boots by UEFI, grows to its size, formats a blank data disk, and becomes a control plane of one replica,
// whose kubelet registers a Node and runs a pod without a registry.
func TestABakedDiskBecomesAMasterWithANode(t *testing.T) {
	image := baked(t)
	instance := masterA()
	n := newNetwork(t, instance)
	n.serveMetadata(t)
	conf, kubeconfig := n.initRecord(t), filepath.Join(n.dir, "admin.kubeconfig")
	data := blank(t)
	m := boot(t, n, image, data)

	m.await(t, `resized filesystem to 2[45]\d{5}\b`) // blocks of 4 KiB, of the 10 GiB that the disk has
	m.await(t, `Mounted var-lib-quorate\.mount`)
	m.await(t, `quorate\[\d+\]: `)
	if label := run(t, "blkid", "-p", "-s", "LABEL", "-o", "value", data); strings.TrimSpace(label) != "quorate-data" {
		t.Errorf("the data disk is labeled %q", label)
	}
	m.until(t, "a kubeconfig", func() bool {
		_, err := n.try(t, program(t, "quorate"), "kubeconfig", "--force", "--config", conf, "--output", kubeconfig,
			"--server", "https://"+address)
		return err == nil
	})
	kubectl := func(args ...string) (string, error) {
		return n.try(t, program(t, "kubectl"), append([]string{"--kubeconfig", kubeconfig, "--request-timeout", "1m"},
			args...)...)
	}
	m.until(t, "/readyz at the machine's address", func() bool {
		out, err := kubectl("get", "--raw", "/readyz")
		return err == nil && out == "ok"
	})

	// A balancer forwards the endpoint's address as it is; the machine takes it for its own.
	m.until(t, "/readyz at the endpoint's address", func() bool {
		out, err := kubectl("get", "--raw", "/readyz", "--server", "https://"+endpoint)
		return err == nil && out == "ok"
	})

	var master node
	m.until(t, "a Node that is Ready", func() bool {
		out, err := kubectl("get", "node", instance.Name, "-o", "json")
		if err != nil || json.Unmarshal([]byte(out), &master) != nil {
			return false
		}
		return master.ready()
	})
	// The controller-manager takes away the one that says not ready.
	if !slices.Contains(master.Spec.Taints, taint{"node-role.kubernetes.io/control-plane", "NoSchedule"}) {
		t.Errorf("the Node's taints are %+v", master.Spec.Taints)
	}
	if out, err := kubectl("get", "--raw", "/api/v1/nodes/"+instance.Name+"/proxy/healthz"); err != nil || out != "ok" {
		t.Errorf("the kubelet, asked through the apiserver: %v: %s", err, out)
	}

	pod := filepath.Join(n.dir, "pod.yaml")
	if err := os.WriteFile(pod, []byte(aPod), 0o600); err != nil {
		t.Fatal(err)
	}
	m.until(t, "a pod that was accepted", func() bool { // the controller-manager makes its service account
		_, err := kubectl("apply", "-f", pod)
		return err == nil
	})
	var last string
	m.until(t, "a pod that runs at an address of the Node's range", func() bool {
		last, _ = kubectl("get", "pod", "probe", "-o", "jsonpath={.status.phase} {.status.podIP}")
		prefix, _, _ := strings.Cut(master.Spec.PodCIDR, "0/")
		return prefix != "" && strings.HasPrefix(last, "Running "+prefix)
	})

	if strings.Contains(m.console(), "processes run as root") {
		t.Error("the image lacks users of processes")
	}
	for line := range strings.Lines(m.console()) {
		if strings.Contains(line, "[FAILED]") && !strings.Contains(line, "chrony-wait") { // here is no NTP server
			t.Errorf("on the console: %s", line)
		}
	}
}
