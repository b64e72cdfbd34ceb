package addons

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/realtest"
)

// TestBesideKubeAddonManager runs upstream's own script with the real kubectl, and then this manager, each on a folder
// of the same hundred objects in both modes, at their own pace. The log has what each does; what fails the test is what
// this manager promises.
func TestBesideKubeAddonManager(t *testing.T) {
	if os.Getenv("QUORATE_ADDONS") == "" {
		t.Skip("takes six minutes; make addons runs it")
	}
	realtest.Program(t, "kubectl")
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	list.Dir = "../images/kubernetes"
	dir, err := list.Output()
	scripts := filepath.Join(strings.TrimSpace(string(dir)), "cluster/addons/addon-manager")
	if _, found := os.Stat(filepath.Join(scripts, "kube-addons.sh")); err != nil || found != nil {
		t.Skipf("the sources of Kubernetes are not in the module cache: %v, %v", err, found)
	}
	withCluster(t, func(t *testing.T, c *realCluster) {
		t.Run("kube-addon-manager", func(t *testing.T) {
			folder := hundred(t, c, "theirs")
			compare(t, c, contender{namespace: "theirs", folder: folder, agent: "kubectl/",
				start: func() func() time.Duration { return c.script(t, scripts, folder) }})
		})
		t.Run("quorate", func(t *testing.T) {
			folder := hundred(t, c, "ours")
			c.grant(t, folder)
			writes := compare(t, c, contender{namespace: "ours", folder: folder, agent: "quorate-addons",
				start: func() func() time.Duration {
					before := ownCPU(t)
					m := c.manage(t, "master-a", folder, Pace{})
					return func() time.Duration { m.stop(); return ownCPU(t) - before }
				}})
			if writes > 0 {
				t.Errorf("%d writes in the steady state", writes)
			}
			if n := c.count(t, "ours"); n != 99 {
				t.Errorf("the empty folder has left %d of the 99 objects", n)
			}
		})
	})
}

// hundred is a folder of 99 ConfigMaps and their namespace, every third one EnsureExists.
func hundred(t *testing.T, c *realCluster, namespace string) string {
	files := map[string]string{"version": "1", "a-namespace.yaml": labelled(namespaceYAML(namespace), plan.Reconcile)}
	for n := range 99 {
		mode := plan.Reconcile
		if n%3 == 0 {
			mode = plan.EnsureExists
		}
		name := fmt.Sprintf("object-%d", n)
		files[name+".yaml"] = labelled(configMapYAML(namespace, name, "value"), mode)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "default"}}
	if err := client.IgnoreAlreadyExists(c.admin.Create(t.Context(), account)); err != nil {
		t.Fatal(err)
	}
	return writeFolder(t, t.TempDir(), files)
}

func labelled(manifest string, mode plan.Mode) string {
	return strings.Replace(manifest, "metadata: {", "metadata: {labels: {"+plan.ModeLabel+": "+string(mode)+"}, ", 1)
}

// script runs kube-addon-manager's script as an administrator, with its own interval of a minute.
func (c *realCluster) script(t *testing.T, scripts, folder string) (stop func() time.Duration) {
	kubeconfig, err := certs.AdminKubeconfig(c.bundle, c.in.Cluster, "https://127.0.0.1:443", 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	home := writeFolder(t, t.TempDir(), map[string]string{"admin.kubeconfig": string(kubeconfig)})
	cmd := exec.Command("bash", "./kube-addons-main.sh")
	cmd.Dir = scripts
	cmd.Env = append(os.Environ(), "KUBECTL_BIN="+realtest.Program(t, "kubectl"), "ADDON_PATH="+folder, "HOME="+home,
		"KUBECONFIG="+filepath.Join(home, "admin.kubeconfig"), "ADDON_MANAGER_LEADER_ELECTION=false")
	log, err := os.Create(filepath.Join(home, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() time.Duration {
		log.Close()
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		cmd.Wait()
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
}

// contender is one of the two: start runs it, and its result ends it and says how much processor time it took.
type contender struct {
	namespace, folder, agent string
	start                    func() func() time.Duration
}

// compare logs what a contender does, and returns its writes while nothing changes.
func compare(t *testing.T, c *realCluster, x contender) int {
	begun := time.Now()
	stop := x.start()
	eventually(t, "all objects are there", 5*time.Minute, func() error {
		if n := c.count(t, x.namespace); n != 99 {
			return fmt.Errorf("%d are there", n)
		}
		return nil
	})
	t.Logf("all are there after %s", time.Since(begun).Round(time.Second))
	time.Sleep(time.Minute) // whatever follows the first pass
	_, at := c.requestsBy(t, 0, x.agent)
	const steady = 2 * time.Minute
	time.Sleep(steady)
	list, _ := c.requestsBy(t, at, x.agent)
	writes, dry := writesOf(list)
	perHour := func(n int) int { return n * int(time.Hour/steady) }
	t.Logf("in an hour without a change, from two minutes: %d requests, %d writes, %d dry runs", perHour(len(list)),
		perHour(len(writes)), perHour(len(dry)))
	changed := time.Now()
	writeFolder(t, x.folder, map[string]string{"version": "2",
		"object-1.yaml": labelled(configMapYAML(x.namespace, "object-1", "changed"), plan.Reconcile)})
	eventually(t, "the changed file is in the cluster", 3*time.Minute, func() error {
		if got := c.configMap(t, x.namespace, "object-1").Data["key"]; got != "changed" {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	t.Logf("a changed file was in the cluster after %s", time.Since(changed).Round(100*time.Millisecond))
	files, err := filepath.Glob(filepath.Join(x.folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	writeFolder(t, x.folder, map[string]string{"version": "3"})
	time.Sleep(75 * time.Second)
	t.Logf("the empty folder has left %d of 99 objects", c.count(t, x.namespace))
	lived := time.Since(begun)
	t.Logf("it used %.2f %% of a core in %s", 100*stop().Seconds()/lived.Seconds(), lived.Round(time.Second))
	return len(writes)
}

// count is how many ConfigMaps of the test a namespace has.
func (c *realCluster) count(t *testing.T, namespace string) (n int) {
	t.Helper()
	var list corev1.ConfigMapList
	if err := c.admin.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for _, cm := range list.Items {
		if strings.HasPrefix(cm.Name, "object-") && cm.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}
