/** A platform for which there is an executable of the kubectl plugin, by the names of Go and krew. */
export interface PluginPlatform {
  readonly os: 'linux' | 'darwin' | 'windows';
  readonly arch: 'amd64' | 'arm64';
  /** Its names in Node.js: `<process.platform>-<process.arch>`. */
  readonly node: string;
}

/** Windows on arm64 runs the executable for amd64. */
export const PLUGIN_PLATFORMS: readonly PluginPlatform[] = [
  { os: 'linux', arch: 'amd64', node: 'linux-x64' },
  { os: 'linux', arch: 'arm64', node: 'linux-arm64' },
  { os: 'darwin', arch: 'amd64', node: 'darwin-x64' },
  { os: 'darwin', arch: 'arm64', node: 'darwin-arm64' },
  { os: 'windows', arch: 'amd64', node: 'win32-x64' },
];

/**
 * @param text names such as `linux/amd64,darwin/arm64`; empty for all
 * @throws {Error} that names the unknown platform
 */
export function readPluginPlatforms(text: string): readonly PluginPlatform[] {
  if (text === '') return PLUGIN_PLATFORMS;
  return text.split(',').map((name) => {
    const platform = PLUGIN_PLATFORMS.find(({ os, arch }) => `${os}/${arch}` === name);
    if (platform !== undefined) return platform;
    const known = PLUGIN_PLATFORMS.map(({ os, arch }) => `${os}/${arch}`).join(', ');
    throw new Error(`PLUGIN_PLATFORMS names "${name}": it can be one or more of ${known}`);
  });
}
