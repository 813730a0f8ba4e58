import './style/index.css';
import { createRoot } from 'react-dom/client';
import { App } from './frame/App';
import { takeCode } from './frame/Enter';
import { applyChoices } from './frame/theme';
import { preloadScreens } from './frame/views';
import { startConnection } from './store/driver';

applyChoices();
const root = document.getElementById('page');
if (!root) throw new Error('index.html has no #page');

if (location.pathname.endsWith('/enter')) takeCode();
else if (__FIXTURE__ && new URLSearchParams(location.search).has('fixture')) void import('./dev/fixture').then(({ playFixture }) => playFixture());
else startConnection();

createRoot(root).render(<App />);
preloadScreens();
