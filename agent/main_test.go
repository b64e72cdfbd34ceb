package agent

import (
	"os"
	"testing"

	"github.com/quorate/quorate/internal/realtest"
)

func TestMain(m *testing.M) {
	realtest.AtOnce(8) // the parallel ones wait for periods and time-outs, and hardly compute
	os.Exit(m.Run())
}
