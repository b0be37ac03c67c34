//go:build kubernetes1.35 || kubernetes1.36

package main

import (
	"context"

	"k8s.io/kubernetes/pkg/controller/disruption"
)

func runDisruption(ctx context.Context, controller *disruption.DisruptionController) {
	controller.Run(ctx)
}
