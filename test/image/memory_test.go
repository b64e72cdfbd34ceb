package image

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// ofTheAgent finds the process id in a line of the agent's.
var ofTheAgent = regexp.MustCompile(`quorate\[(\d+)\]: time=`)

// The kernel's own limit: a component that may have less memory than it needs is killed by the kernel each time that it
// is started, and the agent says why. Neither the agent nor another component goes with it.
func TestTheKernelLimitsAComponentsMemory(t *testing.T) {
	image := baked(t)
	instance := masterA()
	instance.Attributes["quorate-cluster"] += "components:\n" +
		"  kube-controller-manager: {resources: {memoryMaxBytes: 16777216}}\n" +
		"  kube-scheduler: {resources: {memoryMaxBytes: 1073741824}}\n"
	n := newNetwork(t, instance)
	n.serveMetadata(t)
	conf, kubeconfig := n.initRecord(t), filepath.Join(n.dir, "admin.kubeconfig")
	m := boot(t, n, image, blank(t))

	killed := regexp.MustCompile(`process=kube-controller-manager .*"was killed by SIGKILL \(out of memory\)`)
	m.until(t, "it has been killed three times", func() bool { return len(killed.FindAllString(m.console(), 3)) == 3 })
	m.await(t, `name=component-not-ready reason="kube-controller-manager .*was killed by SIGKILL \(out of memory\)`)
	m.await(t, `process=kube-scheduler from=starting to=ready`)
	m.until(t, "a kubeconfig", func() bool {
		_, err := n.try(t, program(t, "quorate"), "kubeconfig", "--force", "--config", conf, "--output", kubeconfig,
			"--server", "https://"+address)
		return err == nil
	})
	m.until(t, "/readyz", func() bool {
		out, err := n.try(t, program(t, "kubectl"), "--kubeconfig", kubeconfig, "--request-timeout", "1m", "get",
			"--raw", "/readyz")
		return err == nil && out == "ok"
	})
	said := m.console()
	wrong := regexp.MustCompile(`(?m)^.*(\(out of memory\)|not in force|does not give way).*$`)
	for _, line := range wrong.FindAllString(said, -1) {
		if !regexp.MustCompile(`kube-controller-manager.*\(out of memory\)`).MatchString(line) {
			t.Errorf("on the console: %s", line)
		}
	}
	var agents []string
	for _, m := range ofTheAgent.FindAllStringSubmatch(said, -1) {
		agents = append(agents, m[1])
	}
	if agents = slices.Compact(agents); len(agents) != 1 {
		t.Errorf("the agents' process ids are %q: it was started again", agents)
	}
}
