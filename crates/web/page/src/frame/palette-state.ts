/** Which of the two overlays of the frame is open. */
import { create } from 'zustand';

export const useOverlay = create<{ open: 'palette' | 'help' | null }>(() => ({ open: null }));

export const openPalette = () => useOverlay.setState({ open: 'palette' });
export const openHelp = () => useOverlay.setState({ open: 'help' });
export const closeOverlay = () => useOverlay.setState({ open: null });
