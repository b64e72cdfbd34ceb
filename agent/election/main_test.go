package election

import (
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// walks is how many random walks TestNeverTwoWork goes.
var walks uint

func TestMain(m *testing.M) {
	flag.UintVar(&walks, "walks", 150, "how many random walks to go")
	flag.Parse()
	klog.SetLogger(logr.Discard()) // client-go alone, in one test, says each try
	os.Exit(m.Run())
}
