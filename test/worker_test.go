package test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// theWorker is the one of TestAWorkersPodsGoOn.
const theWorker = "node-1"

// TestAWorkersPodsGoOn has a worker join the first master, and goes through kube-up's procedures: meanwhile its pod
// answers each request, is never restarted, and its Node is never marked as not ready.
func TestAWorkersPodsGoOn(t *testing.T) {
	p := fleetPlan(1)
	p.image, p.namesAndTime = true, true
	c := begin(t, p)
	t.Cleanup(func() { c.vms = append(c.vms, theWorker); c.tell(t); c.tellUnits(t) })
	var before pod
	var asked *asker
	c.kubeUpsProcedures(t, beside{
		first: func() {
			_, err := c.quorate(t, "kubeconfig", "--output", c.kubeconfig())
			c.must(t, err)
			c.addStranger(t, theWorker, "us-central1-b")
			c.joins(t)
			c.mustKubectl(t, "", "apply", "-f", c.onTheWorker(t))
			before = c.awaitWorkersPods(t, 1)[0]
			asked = c.ask(t, "http://"+before.Status.PodIP+":8080/programs/")
		},
		last: func() {
			c.mustKubectl(t, "", "scale", "deployment", "programs", "--replicas", "2")
			for _, p := range c.awaitWorkersPods(t, 2) {
				c.mustKubectl(t, "", "exec", p.Metadata.Name, "--", "/programs/quorate", "version")
			}
			after := c.awaitWorkersPods(t, 2)
			if !slices.ContainsFunc(after, func(p pod) bool {
				return p.Metadata.Name == before.Metadata.Name &&
					p.Status.ContainerStatuses[0].ContainerID == before.Status.ContainerStatuses[0].ContainerID
			}) {
				t.Errorf("%+v was replaced: %+v", before, after)
			}
			c.onlyItsNodes(t)
			asked.done(t)
			if out := c.mustKubectl(t, "", "get", "events", "-A", "-o", "jsonpath={range .items[*]}"+
				"{.involvedObject.name} {.reason}{\"\\n\"}{end}"); strings.Contains(out, theWorker+" NodeNotReady") {
				t.Errorf("the worker was marked as not ready:\n%s", out)
			}
		},
	})
}

// joins makes the worker one: the image's kubelet without the agent, as docs/workers.md has it.
func (c *cluster) joins(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "workers.md"))
	c.must(t, err)
	_, after, ok := strings.Cut(string(page), "```yaml\n# /etc/kubernetes/kubelet.yaml\n")
	conf, _, ok2 := strings.Cut(after, "```")
	_, after, ok3 := strings.Cut(after, "```sh\n")
	command, _, ok4 := strings.Cut(after, "```")
	if !ok || !ok2 || !ok3 || !ok4 {
		t.Fatal("the page has no configuration or no command line of a worker's kubelet any more")
	}
	file := filepath.Join(c.state, "bootstrap-kubelet.conf")
	_, err = c.quorate(t, "token", "create", "--lifetime", "1h", "--output", file)
	c.must(t, err)
	token, err := clientcmd.LoadFromFile(file)
	c.must(t, err)
	text, err := os.ReadFile(file)
	c.must(t, err)
	var ca []byte
	for _, cluster := range token.Clusters {
		ca = cluster.CertificateAuthorityData
	}
	files := map[string]string{
		"/etc/kubernetes/bootstrap-kubelet.conf": string(text),
		"/etc/kubernetes/ca.crt":                 string(ca),
		"/etc/kubernetes/kubelet.yaml":           conf,
		"/etc/systemd/system/kubelet.service.d/worker.conf": "[Service]\nExecStartPre=\nExecStart=\nExecStart=" +
			strings.Replace(command, "kubelet ", "/usr/local/bin/kubelet --config-dir=/etc/kubernetes/kubelet.conf.d ",
				1),
	}
	await(t, "the worker's systemd answers", func() error {
		cmd, err := c.Command(t.Context(), theWorker, "systemctl", "mask", "--now", "quorate.service",
			"kubelet.service")
		if err != nil {
			return err
		}
		_, err = run(cmd)
		return err
	})
	script := "systemctl unmask kubelet.service\n"
	for path, text := range files {
		script += fmt.Sprintf("mkdir -p %s && echo %s | base64 -d >%s\n", filepath.Dir(path),
			base64.StdEncoding.EncodeToString([]byte(text)), path)
	}
	c.in(t, theWorker, "set -e\n"+script+"systemctl daemon-reload\nsystemctl start --no-block kubelet.service")
	await(t, "the worker asks for a serving certificate", func() error {
		names, err := c.kubectl(t, "", "get", "csr", "--field-selector",
			"spec.signerName=kubernetes.io/kubelet-serving", "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil || names == "" {
			return fmt.Errorf("no request: %v", err)
		}
		_, err = c.kubectl(t, "", append([]string{"certificate", "approve"}, strings.Fields(names)...)...)
		return err
	})
	await(t, "the worker is a Ready Node", func() error {
		n, err := c.node(t, theWorker)
		if err != nil {
			return err
		}
		for _, about := range n.Status.Conditions {
			if about.Type == "Ready" && about.Status == "True" && len(n.Spec.Taints) == 0 {
				return nil
			}
		}
		return fmt.Errorf("%+v", n)
	})
}

// onTheWorker is the Deployment of pods.yaml as one pod, which only the worker may run.
func (c *cluster) onTheWorker(t *testing.T) (file string) {
	t.Helper()
	text, err := os.ReadFile("pods.yaml")
	c.must(t, err)
	const tolerates = "      - {key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}\n"
	changed := string(text)
	for _, change := range [][2]string{{"replicas: 3", "replicas: 1"}, {"      tolerations:\n", ""}, {tolerates, ""},
		{"whenUnsatisfiable: DoNotSchedule", "whenUnsatisfiable: ScheduleAnyway"}} {
		if !strings.Contains(changed, change[0]) {
			t.Fatalf("pods.yaml has no %q any more", change[0])
		}
		changed = strings.Replace(changed, change[0], change[1], 1)
	}
	file = filepath.Join(c.state, "pods.yaml")
	c.must(t, os.WriteFile(file, []byte(changed), 0o600))
	return file
}

// awaitWorkersPods waits until the worker runs so many.
func (c *cluster) awaitWorkersPods(t *testing.T, count int) (found []pod) {
	t.Helper()
	await(t, fmt.Sprintf("%d pods on the worker", count), func() error {
		all, err := c.listPods(t)
		if err != nil {
			return err
		}
		found = nil
		for _, p := range all {
			of := p.Status.ContainerStatuses
			if p.Spec.NodeName == theWorker && len(of) == 1 && of[0].Ready {
				found = append(found, p)
			}
		}
		if len(found) != count || len(all) != count {
			events, _ := c.kubectl(t, "", "get", "events")
			return fmt.Errorf("%d of %d: %+v\n%s", len(found), len(all), all, events)
		}
		return nil
	})
	return found
}

// nodePatience: kube-controller-manager takes 40 s until it says that a Node is not heard of, the agent that leads
// waits another minute, and looks once a minute.
const nodePatience = 5 * time.Minute

// onlyItsNodes wants a Node of each master and of the worker, and of nobody who has gone.
func (c *cluster) onlyItsNodes(t *testing.T) {
	t.Helper()
	want := append([]string{theWorker}, c.vms...)
	slices.Sort(want)
	awaitWithin(t, nodePatience, "the Nodes are those that are there", func() error {
		out, err := c.kubectl(t, "", "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil {
			return err
		}
		if got := strings.Fields(out); !slices.Equal(got, want) {
			return fmt.Errorf("%q, not %q", got, want)
		}
		return nil
	})
}

// asker asks a pod five times a second at most, from the pod's own Node.
type asker struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   bytes.Buffer
}

// ask begins to.
func (c *cluster) ask(t *testing.T, url string) *asker {
	t.Helper()
	const script = `asked=0
until read -t 0.2 -r || [ $? -lt 128 ]; do
	curl -sS -f -m 2 -o /dev/null "$0" || echo "not answered at $(date +%T)"
	asked=$((asked+1))
done
echo "asked $asked times"`
	cmd, err := c.Command(t.Context(), theWorker, "bash", "-c", script, url)
	c.must(t, err)
	a := &asker{cmd: cmd}
	cmd.Stdout, cmd.Stderr = &a.out, &a.out
	a.stdin, err = cmd.StdinPipe()
	c.must(t, err)
	c.must(t, cmd.Start())
	return a
}

// done ends it. Each request is to have been answered.
func (a *asker) done(t *testing.T) {
	t.Helper()
	a.stdin.Close()
	err := a.cmd.Wait()
	times := 0
	_, scanned := fmt.Sscanf(a.out.String(), "asked %d times\n", &times)
	if err != nil || scanned != nil || times < 100 {
		t.Errorf("the pod did not go on: %v\n%s", err, a.out.String())
		return
	}
	t.Logf("the worker's pod answered each of %d requests", times)
}
