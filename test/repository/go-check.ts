// Formatting of all Go sources, and go vet and staticcheck of the programs that are shipped: `tsx test/repository/go-check.ts`.
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { goTool } from '../go-tools.js';
import { ROOT } from '../source-files.js';

const SHIPPED = ['cni/plugin', 'guest/packets'];

const sources = execFileSync('git', ['ls-files', '*.go'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
const unformatted = execFileSync('gofmt', ['-l', ...sources], { cwd: ROOT, encoding: 'utf8' });
if (unformatted !== '') {
  console.error(`run gofmt -w on\n${unformatted}`);
  process.exitCode = 1;
}
const staticcheck = await goTool('staticcheck', (line) => console.error(line));
for (const folder of SHIPPED) {
  const options = { cwd: join(ROOT, folder), stdio: 'inherit' } as const;
  const checks: [string, string[]][] = [
    ['go', ['vet', './...']],
    [staticcheck, ['./...']],
  ];
  for (const [command, args] of checks) if (spawnSync(command, args, options).status !== 0) process.exitCode = 1;
}
