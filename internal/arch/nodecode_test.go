package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// nodePackages is node code: straight-line code against one host.Host, whose
// tasks interleave only inside Host calls. What it may not contain would break
// that, and with it every simulation.
func nodePackages() []string {
	return []string{
		"cluster/inproc", "cluster/inproc/protocol", "cluster/inproc/coordinator", "cluster/inproc/tablet",
		"cluster/inproc/client", "harness/gen", "workloads", "nemesis",
	}
}

// forbiddenCalls are package.Function pairs with the reason against each.
func forbiddenCalls() map[string]string {
	clock := "take the time from Host.Now and wait with Host.Sleep or a Cond"
	contexts := "take contexts from Host.WithTimeout, WithCancel or Context"
	return map[string]string{
		"time.Now": clock, "time.Since": clock, "time.Until": clock, "time.Sleep": clock, "time.After": clock,
		"time.AfterFunc": clock, "time.NewTimer": clock, "time.NewTicker": clock, "time.Tick": clock,
		"context.Background": contexts, "context.TODO": contexts, "context.WithCancel": contexts,
		"context.WithTimeout": contexts, "context.WithDeadline": contexts, "context.WithCancelCause": contexts,
		"context.AfterFunc": contexts, "context.WithoutCancel": contexts,
		"runtime.LockOSThread": "a locked thread breaks coroutines", "runtime.Gosched": "tasks yield in Host calls only",
	}
}

func TestNodeCodeSeesOnlyItsHost(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || !matches(nodePackages(), s.pkg) {
			continue
		}
		for _, finding := range nodeFindings(s.fset, s.ast) {
			t.Error(finding)
		}
	}
}

func TestNodeRulesCatchEachForm(t *testing.T) {
	const bad = `package p
import ("sync"; "time"; "context"; "math/rand/v2")
var mu sync.Mutex
func f(c chan int) {
	go f(c)
	select { case c <- 1: default: }
	defer func() { recover() }()
	_ = time.Now()
	_ = context.Background()
	_ = rand.IntN(3)
}`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "bad.go", bad, parser.SkipObjectResolution)
	require.NoError(t, err)
	text := strings.Join(nodeFindings(fset, file), "\n")
	for _, want := range []string{"sync", "go statement", "channel", "select", "recover", "time.Now", "context.Background", "rand.IntN"} {
		require.Contains(t, text, want)
	}
}

// nodeFindings lists what node code may not contain, with its place.
func nodeFindings(fset *token.FileSet, file *ast.File) []string {
	var found []string
	report := func(n ast.Node, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s: node code: %s", fset.Position(n.Pos()), fmt.Sprintf(format, args...)))
	}
	for _, imp := range file.Imports {
		if target, err := strconv.Unquote(imp.Path.Value); err == nil && (target == "sync" || target == "sync/atomic" || target == "math/rand") {
			report(imp, "import %s: a node is single-threaded and draws from Host.Rand", target)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n, "go statement: start tasks with Host.Go")
		case *ast.ChanType:
			report(n, "channel: use host.Queue or a Cond")
		case *ast.SelectStmt:
			report(n, "select: wait on one Cond")
		case *ast.SendStmt:
			report(n, "channel send: use host.Queue")
		case *ast.CallExpr:
			if why := forbiddenCall(n); why != "" {
				report(n, "%s", why)
			}
		}
		return true
	})
	return found
}

func forbiddenCall(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		if fun.Name == "recover" && len(call.Args) == 0 {
			return "recover: it would stop the unwinding of a kill"
		}
	case *ast.SelectorExpr:
		pkg, ok := fun.X.(*ast.Ident)
		if !ok {
			return ""
		}
		name := pkg.Name + "." + fun.Sel.Name
		if why, bad := forbiddenCalls()[name]; bad {
			return name + ": " + why
		}
		// Constructors of streams are fine; the package's own dice are not.
		if pkg.Name == "rand" && ast.IsExported(fun.Sel.Name) && !strings.HasPrefix(fun.Sel.Name, "New") {
			return name + ": draw from Host.Rand or the stream at hand"
		}
	}
	return ""
}
