package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/fencepost-dev/fencepost"

// policy lists, for every package of ours, the packages of ours that it may
// import ("x/..." stands for x and all below it). A package that is missing
// here fails the test. Do not edit it to make a build pass: an arrow that
// points the wrong way is a design question.
func policy() map[string][]string {
	hostAPI := []string{"history", "cluster", "cluster/host"}
	node := append([]string{"cluster/inproc/protocol"}, hostAPI...)
	return map[string][]string{
		"history":                    {},
		"checker":                    {"history"},
		"minizk/jute":                {},
		"minizk/tree":                {"minizk/jute"},
		"minizk":                     {"minizk/jute", "minizk/tree"},
		"cluster":                    {},
		"cluster/host":               {"history", "cluster", "minizk/jute"},
		"cluster/host/kernel":        append([]string{"minizk/jute"}, hostAPI...),
		"cluster/host/gate":          hostAPI,
		"cluster/host/node":          append([]string{"cluster/host/kernel", "cluster/host/gate"}, hostAPI...),
		"cluster/host/hosttest":      append([]string{"cluster/host/kernel"}, hostAPI...),
		"cluster/host/real":          append([]string{"minizk/jute", "cluster/host/kernel", "cluster/host/gate", "cluster/host/node"}, hostAPI...),
		"sim":                        append([]string{"minizk/jute", "minizk/tree", "cluster/host/kernel", "cluster/host/gate", "cluster/host/node"}, hostAPI...),
		"cluster/zookeeper":          {"cluster", "minizk", "minizk/jute"},
		"cluster/inproc/protocol":    hostAPI,
		"cluster/inproc/coordinator": node,
		"cluster/inproc/tablet":      node,
		"cluster/inproc/client":      node,
		"cluster/inproc":             append([]string{"cluster/inproc/..."}, node...),
		"harness":                    append([]string{"checker"}, hostAPI...),
		"harness/gen":                append([]string{"checker", "harness"}, hostAPI...),
		"nemesis":                    append([]string{"checker", "harness", "harness/gen"}, hostAPI...),
		"workloads":                  append([]string{"checker", "harness", "harness/gen"}, hostAPI...),
		"report":                     {"history", "checker"},
		"internal/arch":              {},
		"internal/lab":               {"..."},
		"cmd/jepsen":                 {"harness", "internal/lab"},
		"harness/e2e":                {"..."},
	}
}

// homes says where a third-party library may be imported, outside tests.
func homes() map[string][]string {
	return map[string][]string{
		"github.com/anishathalye/porcupine":           {"checker"},
		"github.com/testcontainers/testcontainers-go": {"cluster/zookeeper"},
		"github.com/go-zookeeper/zk":                  {"cluster/host/real"},
		"github.com/spf13/cobra":                      {"cmd/jepsen"},
		"github.com/schollz/progressbar/v3":           {"cmd/jepsen"},
		"github.com/stretchr/testify":                 {"cluster/host/hosttest"},
	}
}

type source struct {
	pkg  string // path below the module
	file string
	test bool
	ast  *ast.File
	fset *token.FileSet
}

// sources parses every Go file of the module.
func sources(t *testing.T) []source {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	var all []source
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipDir(root, file, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		all = append(all, source{pkg: path.Dir(rel), file: rel, test: strings.HasSuffix(rel, "_test.go"), ast: parsed, fset: fset})
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// skipDir leaves out what is not of this module: hidden folders, test data and
// modules of their own.
func skipDir(root, dir, name string) bool {
	if dir == root {
		return false
	}
	return strings.HasPrefix(name, ".") || name == "testdata" || name == "results" || name == "tools" || name == "deploy"
}

func TestImportsPointOneWay(t *testing.T) {
	rules := policy()
	stale := policy()
	for _, s := range sources(t) {
		delete(stale, s.pkg)
		allowed, known := rules[s.pkg]
		if !known {
			t.Errorf("%s: package %s is not in the import policy; say there what it may import", s.file, s.pkg)
			continue
		}
		if s.test {
			continue // tests may look anywhere
		}
		for _, imp := range s.ast.Imports {
			target, err := strconv.Unquote(imp.Path.Value)
			require.NoError(t, err)
			own, ours := strings.CutPrefix(target, module+"/")
			if ours && own != s.pkg && !matches(allowed, own) {
				t.Errorf("%s: %s may not import %s", s.file, s.pkg, own)
			}
		}
	}
	for pkg := range stale {
		t.Errorf("the import policy names %s, which does not exist", pkg)
	}
}

func TestLibrariesStayAtHome(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, imp := range s.ast.Imports {
			target, err := strconv.Unquote(imp.Path.Value)
			require.NoError(t, err)
			for lib, where := range homes() {
				if (target == lib || strings.HasPrefix(target, lib+"/")) && !matches(where, s.pkg) {
					t.Errorf("%s: %s may be imported only in %v", s.file, lib, where)
				}
			}
		}
	}
}

func matches(patterns []string, pkg string) bool {
	for _, p := range patterns {
		if p == "..." || p == pkg {
			return true
		}
		if below, ok := strings.CutSuffix(p, "/..."); ok && (pkg == below || strings.HasPrefix(pkg, below+"/")) {
			return true
		}
	}
	return false
}
