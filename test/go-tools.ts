import { ensureCommand, type Progress } from '../bed/build/binaries.js';

/** Tools of others that tests run, written in Go: the newest versions that the oldest supported Go compiles. */
const TOOLS = {
  actionlint: 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.11',
  helm: 'helm.sh/helm/v4/cmd/helm@v4.0.5',
  staticcheck: 'honnef.co/go/tools/cmd/staticcheck@v0.6.1',
  kustomize: 'sigs.k8s.io/kustomize/kustomize/v5@v5.8.1',
} as const;

export type GoTool = keyof typeof TOOLS;

/** Time for a test hook that uses tools, because the first use of a tool compiles it. */
export const GO_TOOL_TIMEOUT_MS = 15 * 60_000;

const paths = new Map<GoTool, Promise<string>>();

/** @returns the path of the executable, which the first use compiles: see {@link GO_TOOL_TIMEOUT_MS} */
export function goTool(name: GoTool, progress: Progress = () => undefined): Promise<string> {
  const path = paths.get(name) ?? ensureCommand(TOOLS[name], progress);
  paths.set(name, path);
  return path;
}
