package k8s

// StopScript is for tests in another package.
var StopScript = stopScript
