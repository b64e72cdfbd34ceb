package ringtest

import (
	"os"
	"testing"

	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/replica"
)

const testCluster = "demo"

// The places of three replicas; their instances are 101, 102 and 103.
var (
	pa = replica.Place{Zone: "us-central1-a", Name: "m-a"}
	pb = replica.Place{Zone: "us-central1-b", Name: "m-b"}
	pc = replica.Place{Zone: "us-central1-c", Name: "m-c"}
)

func TestMain(m *testing.M) {
	realtest.AtOnce(5)
	os.Exit(m.Run())
}
