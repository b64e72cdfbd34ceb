package durable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The test binary runs itself as other processes; the variable says what such a process does.
const roleVariable = "DURABLE_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "racer":
		racer(os.Args[1], os.Args[2])
	case "crasher":
		crasher(os.Args[1])
	}
}

// racer creates each file that stdin names and says whether it won.
func racer(dir, name string) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		err := CreateFile(filepath.Join(dir, lines.Text()), []byte(name), 0o600)
		switch {
		case err == nil:
			fmt.Println("won")
		case errors.Is(err, fs.ErrExist):
			fmt.Println("lost")
		default:
			fmt.Println(err)
		}
	}
}

// crasher runs into a file size limit, in the middle of its data.
func crasher(path string) {
	limit := uint64(4096)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(WriteFile(path, make([]byte, 3*limit), 0o600) != nil)
}

func process(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	return cmd
}

// names lists a folder.
func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// holds checks a file's content and mode.
func holds(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || string(data) != content {
		t.Errorf("%s holds %q, %v: want %q", path, data, err, content)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
		t.Errorf("%s has mode %v, %v: want %v", path, info.Mode(), err, mode)
	}
}

func TestWriteFileReplacesContentAndMode(t *testing.T) {
	old := syscall.Umask(0o077) // the mode asked for holds whatever the umask is
	defer syscall.Umask(old)
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, c := range []struct {
		content string
		mode    fs.FileMode
	}{{"first", 0o600}, {"second, longer", 0o644}, {"", 0o400}, {"last", 0o600}} {
		if err := WriteFile(path, []byte(c.content), c.mode); err != nil {
			t.Fatal(err)
		}
		holds(t, path, c.content, c.mode)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"f"}) {
		t.Errorf("the folder holds %q", got)
	}
}

func TestCreateFileRefusesWhatExists(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := CreateFile(path, []byte("first"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := CreateFile(path, []byte("second"), 0o600); !errors.Is(err, fs.ErrExist) ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("second create: %v: want fs.ErrExist with the path", err)
	}
	holds(t, path, "first", 0o640)
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := CreateFile(filepath.Join(dir, "link"), nil, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create over a dangling link: %v: want fs.ErrExist", err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"f", "link"}) {
		t.Errorf("the folder holds %q: the loser left something behind", got)
	}
}

func TestWritingIntoAFolderThatIsNotThereIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent", "f")
	for name, err := range map[string]error{
		"WriteFile":  WriteFile(path, nil, 0o600),
		"CreateFile": CreateFile(path, nil, 0o600),
		"SyncDir":    SyncDir(filepath.Dir(path)),
		"CleanTemp":  CleanTemp(filepath.Dir(path)),
		"Rename":     Rename(path, path+"2"),
	} {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), filepath.Dir(path)) {
			t.Errorf("%s: %v: want fs.ErrNotExist with the path", name, err)
		}
	}
}

func TestCreateFileRaceOfProcesses(t *testing.T) {
	const racers, races = 8, 60
	dir := t.TempDir()
	var files []string
	for n := range races {
		files = append(files, fmt.Sprintf("f%d", n))
	}
	var all []*exec.Cmd
	var ins []io.WriteCloser
	var outs []*strings.Builder
	for n := range racers {
		cmd, out := process(t, "racer", dir, fmt.Sprintf("racer %d", n)), &strings.Builder{}
		in, err := cmd.StdinPipe()
		cmd.Stdout = out
		if err := errors.Join(err, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		all, ins, outs = append(all, cmd), append(ins, in), append(outs, out)
	}
	for _, in := range ins { // all at once, when all are there
		if _, err := io.WriteString(in, strings.Join(files, "\n")); err != nil {
			t.Fatal(err)
		}
		in.Close()
	}
	winners := make([][]string, races)
	for n, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		results := strings.Fields(outs[n].String())
		if len(results) != races {
			t.Fatalf("racer %d: %q", n, outs[n])
		}
		for i, result := range results {
			if result == "won" {
				winners[i] = append(winners[i], fmt.Sprintf("racer %d", n))
			}
		}
	}
	for i, w := range winners {
		if len(w) != 1 {
			t.Fatalf("%s was won by %q: want exactly one", files[i], w)
		}
		holds(t, filepath.Join(dir, files[i]), w[0], 0o600)
	}
	if got := names(t, dir); len(got) != races {
		t.Errorf("the folder holds %q", got)
	}
}

func TestWriterThatIsStoppedInTheMiddleLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := process(t, "crasher", path).Output(); err == nil && string(out) != "true\n" {
		t.Fatalf("the writer was not stopped: %q", out)
	}
	holds(t, path, "old", 0o600)
}

func TestCleanTempRemovesWhatDeadWritersLeftAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{tempPrefix + "f-123", tempPrefix + "g-9", "f", ".hidden"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := CleanTemp(dir); err != nil {
			t.Fatal(err)
		}
		if got := names(t, dir); !slices.Equal(got, []string{".hidden", "f", "sub"}) {
			t.Errorf("the folder holds %q", got)
		}
	}
}

// TestTempFilesAreKnownByTheirNames holds write and CleanTemp together.
func TestTempFilesAreKnownByTheirNames(t *testing.T) {
	dir := t.TempDir()
	stop := errors.New("stop")
	err := write(File{filepath.Join(dir, "f"), []byte("x"), nil, 0o640}, func(temp, path string) error {
		if !strings.HasPrefix(filepath.Base(temp), tempPrefix) || filepath.Dir(temp) != dir {
			t.Errorf("temporary file %s", temp)
		}
		holds(t, temp, "x", 0o640) // whole before it gets its name
		return stop
	})
	if !errors.Is(err, stop) || len(names(t, dir)) != 0 {
		t.Errorf("%v, the folder holds %q", err, names(t, dir))
	}
}

// Several files are put in place in their order, each whole. What comes behind one that cannot be stays as it was.
func TestWriteFilesPutsEachInPlaceInItsOrder(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("c"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if n, err := WriteFiles(nil); n != 0 || err != nil {
		t.Errorf("no file: %d, %v", n, err)
	}
	a, b := File{at("a"), []byte("1"), nil, 0o640}, File{at("folder/b"), []byte("2"), &Owner{os.Getuid(), os.Getgid()},
		0o600}
	c := File{at("c"), []byte("3"), nil, 0o600}
	if n, err := WriteFiles([]File{a, b, c}); n != 3 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	holds(t, a.Path, "1", 0o640)
	holds(t, b.Path, "2", 0o600)
	holds(t, c.Path, "3", 0o600)
	a.Data, c.Data = []byte("4"), []byte("5")
	n, err := WriteFiles([]File{a, {at("folder"), nil, nil, 0o600}, c})
	if n != 1 || err == nil || !strings.Contains(err.Error(), at("folder")) {
		t.Errorf("in place of a folder: %d, %v", n, err)
	}
	holds(t, a.Path, "4", 0o640)
	holds(t, c.Path, "3", 0o600)
	if n, err := WriteFiles([]File{c, {at("absent/f"), nil, nil, 0o600}}); n != 0 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is not there: %d, %v", n, err)
	}
	holds(t, c.Path, "3", 0o600)
	if got := names(t, dir); !slices.Equal(got, []string{"a", "c", "folder"}) {
		t.Errorf("the folder holds %q", got)
	}
}

func BenchmarkSixteenFiles(b *testing.B) {
	dir := b.TempDir()
	files := make([]File, 16)
	for n := range files {
		files[n] = File{filepath.Join(dir, fmt.Sprint(n)), make([]byte, 2000), nil, 0o600}
	}
	b.Run("at once", func(b *testing.B) {
		for b.Loop() {
			if _, err := WriteFiles(files); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("one after the other", func(b *testing.B) {
		for b.Loop() {
			for _, f := range files {
				if err := WriteFile(f.Path, f.Data, f.Perm); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

func TestRenameMovesBetweenFolders(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteFile(filepath.Join(dir, "a/f"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range [][2]string{{"a/f", "a/g"}, {"a/g", "b/g"}, {"b", "c"}} {
		if err := Rename(filepath.Join(dir, step[0]), filepath.Join(dir, step[1])); err != nil {
			t.Fatal(err)
		}
	}
	holds(t, filepath.Join(dir, "c/g"), "x", 0o600)
}
