// Package e2e holds the end-to-end tests: whole tests, from plan to verdict,
// against the in-process cluster. They live in one package so that their flags
// work:
//
//	go test -count=1 ./harness/e2e -jepsen.seed=7
//	go test -count=1 -timeout=0 ./harness/e2e -jepsen.seeds=1000
//	go test -count=1 -timeout=0 ./harness/e2e -jepsen.for=1h -jepsen.world=local
//
// A run that fails leaves its folder, with report and command, in the module
// root's results.
package e2e
